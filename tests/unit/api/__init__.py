"""Tests of engine.api."""
