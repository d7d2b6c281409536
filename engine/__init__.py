"""A declarative reconciliation engine for run-to-completion jobs on Kubernetes."""

__version__ = "0.1.0"
