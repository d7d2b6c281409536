"""Tests of engine.decide.prune and of what engine.prune does without a cluster."""
