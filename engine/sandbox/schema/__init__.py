"""What fields a kind has: one table of types, its reader, and the decoder of request bodies."""

from engine.sandbox.schema.decode import decode
from engine.sandbox.schema.model import ListOf, MapOf, Scalar, Schema, Struct, Type

__all__ = ["ListOf", "MapOf", "Scalar", "Schema", "Struct", "Type", "decode"]
