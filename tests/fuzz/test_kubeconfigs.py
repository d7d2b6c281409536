"""Whatever a kubeconfig holds: a client, or one error that names the file and quotes no secret."""

import base64
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine.cluster.connect import connect
from engine.errors import EngineError, UnreachableError
from tests.fuzz import play
from tests.unit.strategies import NASTY, json_values

_CANARY = "canary-5ecret"
_PEM = base64.b64encode(f"-----BEGIN PRIVATE KEY-----\n{_CANARY}\n".encode()).decode()
_USERS: tuple[dict[str, Any], ...] = (
    {"token": _CANARY},
    {"token": f"{_CANARY}\n"},
    {"token": f"{_CANARY}\u2603"},
    {"tokenFile": "/nowhere/token"},
    {"username": "ci", "password": _CANARY},
    {"client-certificate-data": _PEM, "client-key-data": _PEM},
    {"client-certificate": "/nowhere/cert", "client-key": "/nowhere/key"},
    {},
)
_SERVERS = ("", "https://[::1", "http://127.0.0.1:99999", "http://127.0.0.1:1 ", "file:///etc")
_NOWHERE = ("https://127.0.0.1:1", "http://127.0.0.1:1", *_SERVERS)
_PIECES = (
    *NASTY,
    "a: ",
    "- ",
    "\n",
    "\n  ",
    "&a ",
    "*a",
    "!!binary ",
    "---\n",
    "{",
    "}",
    '"',
    ",",
    "0x",
)
_VALUES = st.one_of(json_values, st.sampled_from([None, "ci", -1, "http://127.0.0.1:1", *_SERVERS]))


def _kubeconfig(user: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ci",
        "contexts": [
            {"name": "ci", "context": {"cluster": "ci", "user": "ci", "namespace": "ci"}},
            {"name": "other", "context": {"cluster": "ci", "user": "ci"}},
        ],
        "clusters": [
            {
                "name": "ci",
                "cluster": {
                    "server": "https://127.0.0.1:1",
                    "certificate-authority-data": "Zm9v",
                    "insecure-skip-tls-verify": True,
                    "tls-server-name": "x",
                    "proxy-url": "http://127.0.0.1:1",
                },
            }
        ],
        "users": [{"name": "ci", "user": user}],
    }


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    document: Any = _kubeconfig(draw(st.sampled_from(_USERS)))
    for _ in range(draw(st.integers(0, 4))):
        document = _edited(draw, document)
    text = json.dumps(
        document, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1]))
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(_PIECES)) + text[at + draw(st.integers(0, 3)) :]
    return text


def _edited(draw: st.DrawFn, value: Any) -> Any:
    """`value` with something in it replaced, left out, or wrapped into a list or a mapping."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        at = draw(st.sampled_from(keys))
        if not draw(st.integers(0, 5)):
            return (
                {key: item for key, item in value.items() if key != at}
                if isinstance(value, dict)
                else [item for number, item in enumerate(value) if number != at]
            )
        if isinstance(value, dict):
            return {**value, at: _edited(draw, value[at])}
        return [_edited(draw, item) if number == at else item for number, item in enumerate(value)]
    new = draw(_VALUES)
    return draw(st.sampled_from([new, [value], {"x": value}, [value, new]]))


def test_a_broken_kubeconfig_is_one_error_that_names_the_file_and_no_secret(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kubeconfig"

    def check(given: tuple[str, str]) -> None:
        text, context = given
        path.write_text(text, encoding="utf-8", errors="replace")
        error = _error_of(path, context)
        if error is not None:
            told = str(error)
            assert str(path) in told or isinstance(error, UnreachableError)
            assert _CANARY not in told
            assert _PEM[:20] not in told
            assert "\n" not in told
            assert len(told) < 1_000 + len(str(path))

    play(st.tuples(_mutated(), st.sampled_from(["", "", "ci", "other", "absent"])), check)


def _error_of(path: Path, context: str) -> EngineError | None:
    """What connecting, and a request where nobody answers, end with."""
    try:
        client = connect(str(path), context).client
        if client.server in _NOWHERE:
            client.request("GET", "/version", timeout=5.0)
    except EngineError as error:
        return error
    return None
