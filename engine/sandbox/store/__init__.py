"""Objects, their resource versions, and the history that watches and paged lists read."""

from engine.sandbox.store.entry import Change, Entry, encode
from engine.sandbox.store.storage import Storage

__all__ = ["Change", "Entry", "Storage", "encode"]
