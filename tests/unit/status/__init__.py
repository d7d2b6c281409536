"""Tests of engine.status."""
