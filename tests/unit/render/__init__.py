"""Tests of engine.render."""
