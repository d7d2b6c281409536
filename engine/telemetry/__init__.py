"""Typed events, metrics and probes, and the redactor that keeps secrets out of all output."""
