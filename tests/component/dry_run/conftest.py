"""The simulated cluster and the command line of the records' tests."""

from tests.component.records.conftest import engine, objects, sandbox

__all__ = ["engine", "objects", "sandbox"]
