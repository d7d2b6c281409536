"""Tests of engine.lifecycle."""
