"""Tests of engine.telemetry."""
