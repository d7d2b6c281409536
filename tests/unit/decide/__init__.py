"""Tests of engine.decide."""
