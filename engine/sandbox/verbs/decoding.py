"""From a body to an object of the right kind, or the server's refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox.errors import bad_request
from engine.sandbox.schema.decode import DecodeError, decode

if TYPE_CHECKING:
    from engine.sandbox.context import Context, Options
    from engine.sandbox.kinds import Kind
    from engine.sandbox.values import Json, Obj


def read_body(context: Context, kind: Kind, body: Json, options: Options) -> Obj:
    """Errors: 400 for another kind, a wrong type, or (Strict) a field that doesn't exist."""
    prefix = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    if not isinstance(body, dict):
        raise bad_request(f"{prefix}: json: cannot unmarshal into Go value of type v1.{kind.kind}")
    given = (body.get("apiVersion", kind.api_version), body.get("kind", kind.kind))
    if given != (kind.api_version, kind.kind):
        version = str(given[0]).rpartition("/")[2]
        raise bad_request(
            f'{given[1]} in version "{version}" cannot be handled as a {kind.kind}: converting '
            f"({version}.{given[1]}) to ({kind.group or 'core'}.{kind.kind}): unknown conversion"
        )
    try:
        obj, unknown = decode(context.struct(kind), body)
    except DecodeError as error:
        raise bad_request(f"{prefix}: {error}") from None
    if unknown and options.validation == "Strict":
        listed = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise bad_request(f"{prefix}: strict decoding error: {listed}")
    if unknown and options.validation == "Warn":
        options.warnings.extend(f'unknown field "{path}"' for path in unknown)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def normalise(context: Context, kind: Kind, obj: Obj) -> tuple[Obj, list[str]]:
    """A patched object read again by the schema. Errors: DecodeError."""
    out, unknown = decode(context.struct(kind), obj)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **out}, unknown
