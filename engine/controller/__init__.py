"""The moving parts around the pure core: sources, informers, the work queue, the reconciler."""
