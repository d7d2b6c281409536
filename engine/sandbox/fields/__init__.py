"""Who owns which field: sets of paths, managedFields, and server-side apply built on them."""

from engine.sandbox.fields.managers import Manager, track_update
from engine.sandbox.fields.server_side_apply import apply

__all__ = ["Manager", "apply", "track_update"]
