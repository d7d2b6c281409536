"""Tests of engine.prune: the rule, and of what engine.prune does without a cluster."""
