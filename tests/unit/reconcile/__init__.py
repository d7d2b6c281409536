"""Tests of engine.reconcile."""
