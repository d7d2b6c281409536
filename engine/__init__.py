"""A declarative reconciliation engine for run-to-completion jobs on Kubernetes."""

__version__ = "0.2.0"
