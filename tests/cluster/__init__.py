"""A real Kubernetes cluster on loopback, for tests.

Everything needed to bring it up is in the standard library, so that `python -m tests.cluster up`
runs on a bare machine before any virtual environment exists.
"""
