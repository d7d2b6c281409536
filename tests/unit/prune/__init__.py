"""Tests of engine.decide.prune and of what engine.controller.prune does without a cluster."""
