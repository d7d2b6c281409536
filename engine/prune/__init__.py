"""Prune: what outlived its TTL goes. `engine prune` and `engine reconcile` both end up here."""
