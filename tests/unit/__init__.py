"""Tests that need no cluster, in folders that mirror `engine/`."""
