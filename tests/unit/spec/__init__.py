"""Tests of engine.spec."""
