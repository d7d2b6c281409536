"""Tests of engine.controller."""
