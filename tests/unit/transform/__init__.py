"""Tests of engine.transform."""
