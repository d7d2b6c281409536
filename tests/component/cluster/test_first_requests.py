"""Several threads may send the first requests of a client at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NoReturn

import pytest
from urllib3.exceptions import HTTPError

from engine.cluster.client import Client, Endpoint
from engine.errors import UnreachableError


def test_the_wait_for_the_first_answer_begins_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[threading.Timer] = []

    def start(timer: threading.Timer) -> None:
        begun.append(timer)
        time.sleep(0.1)

    def refuse(*_: object, **__: object) -> NoReturn:
        raise HTTPError("away")

    def ask(client: Client) -> None:
        with suppress(UnreachableError):
            client.request("GET", "/version")

    monkeypatch.setattr(threading.Timer, "start", start)
    client = Client(lambda: Endpoint("http://api", refuse))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, [client] * 4))
    assert len(begun) == 1
    assert client.requests == 4
