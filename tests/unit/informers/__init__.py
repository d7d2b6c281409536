"""Tests of engine.informers."""
