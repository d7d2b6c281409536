"""Tests of engine.runtime."""
