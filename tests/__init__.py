"""Tests: `unit` needs nothing but Python, `cluster` brings up a real cluster."""
