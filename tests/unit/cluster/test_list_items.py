"""A list is decoded item by item, however its answer is cut into pieces."""

import gzip
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPResponse

from engine.cluster import api
from engine.cluster.client import Client, Endpoint, _split_items

ITEMS = st.lists(
    st.dictionaries(st.text(max_size=8), st.text(max_size=30) | st.integers(), max_size=4)
)


def split(text: bytes, size: int, keep: Any = lambda item: item) -> tuple[list[Any], str]:
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return _split_items(pieces, keep)


@given(ITEMS, st.integers(1, 50), st.booleans())
def test_every_item_comes_out_whole_and_in_order(
    items: list[dict[str, Any]], size: int, ascii_only: bool
) -> None:
    data = {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": items, "x": [1]}
    for separators in ((",", ":"), (", ", ": ")):
        text = json.dumps(data, separators=separators, ensure_ascii=ascii_only)
        found, rest = split(text.encode(), size)
        assert found == items
        assert json.loads(rest) == {**data, "items": []}


def test_what_nothing_is_made_of_is_left_out() -> None:
    text = json.dumps({"items": [{"n": 1}, {"n": 2}, {"n": 3}]}).encode()
    found, _ = split(text, 5, lambda item: item["n"] if item["n"] != 2 else None)
    assert found == [1, 3]


def test_a_list_comes_in_gzip_where_the_server_has_it() -> None:
    data = {"metadata": {}, "items": [{"n": number} for number in range(9)]}

    def respond(*_: object, headers: dict[str, str], **_options: Any) -> BaseHTTPResponse:
        body = gzip.compress(json.dumps(data).encode())
        said = {"Content-Encoding": headers["Accept-Encoding"]}
        return HTTPResponse(BytesIO(body), said, 200, preload_content=False)

    client = Client(lambda: Endpoint("http://somewhere", respond))
    (page,) = api.list_all(client, "/api/v1/pods", "", keep=lambda item: item["n"])
    assert page["items"] == [*range(9)]


def test_it_is_unpacked_however_the_server_sends_it() -> None:
    """An API server sends a long list in chunks: its length isn't known when it begins."""
    body = gzip.compress(json.dumps({"metadata": {}, "items": [{"n": 1}] * 500}).encode())

    class Chunked(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (body[:20], body[20:]):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Chunked) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with HTTPConnectionPool("127.0.0.1", server.server_port) as pool:
            client = Client(lambda: Endpoint("here", pool.urlopen))
            (page,) = api.list_all(client, "/api/v1/pods", "", keep=lambda item: item["n"])
        server.shutdown()
    assert page["items"] == [1] * 500


def test_no_more_than_one_item_is_held_at_a_time() -> None:
    item = b'{"x":"' + b"y" * 1_000_000 + b'"}'
    held: list[int] = []

    def chunks() -> Any:
        yield b'{"items":['
        for number in range(20):
            yield item if not number else b"," + item
            held.append(number)
        yield b"]}"

    lengths: list[int] = []
    found, rest = _split_items(chunks(), lambda _: lengths.append(len(held)))
    assert (found, json.loads(rest)) == ([], {"items": []})
    assert lengths == [*range(20)]


@pytest.mark.parametrize("text", ['{"items":[{"a":1},{"b":', "<html>", ""])
def test_an_answer_that_is_cut_off_is_no_list(text: str) -> None:
    _, rest = split(text.encode(), 7)
    with pytest.raises(ValueError, match="char"):
        json.loads(rest)
