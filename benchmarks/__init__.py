"""Benchmarks: each runs by itself, prints a table and writes JSON."""
