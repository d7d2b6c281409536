"""Tests of engine.inspect."""
