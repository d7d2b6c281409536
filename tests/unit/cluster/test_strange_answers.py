"""What answers in an API server's place, a proxy or a login page, is never taken for one."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from urllib3 import BaseHTTPResponse, HTTPResponse

from engine.cluster import api
from engine.cluster.api_errors import api_error
from engine.cluster.client import Client, Endpoint
from engine.errors import AdmissionRefusedError, BusyError, ExitCode, UnreachableError
from engine.refs import Ref

POD = Ref("Pod", "ci", "a")
MANIFEST = {"kind": "Pod", "metadata": {"namespace": "ci", "name": "a"}}
NOT_AN_API: list[Any] = [{}, [], None, 5, {"metadata": []}, {"error": "log in"}]


def _client(answer: object) -> Client:
    """Of a server that says the same to whatever it is asked."""

    def respond(*_: object, **_options: Any) -> BaseHTTPResponse:
        return HTTPResponse(json.dumps(answer).encode(), status=200)

    return Client(lambda: Endpoint("http://somewhere", respond))


@pytest.mark.parametrize("answer", NOT_AN_API)
def test_an_answer_that_is_no_object_is_not_taken_for_one(answer: object) -> None:
    client = _client(answer)
    asks: list[Callable[[], object]] = [
        lambda: api.get(client, POD),
        lambda: api.create(client, MANIFEST),
        lambda: api.update(client, MANIFEST),
        lambda: api.patch(client, POD, []),
    ]
    for ask in asks:
        with pytest.raises(UnreachableError, match="the answer is no "):
            ask()


@pytest.mark.parametrize("answer", [*NOT_AN_API, {"metadata": {}, "items": "all"}])
def test_an_answer_that_is_no_list_is_not_taken_for_an_empty_one(answer: object) -> None:
    with pytest.raises(UnreachableError, match="the answer is no "):
        api.list_all(_client(answer), "/api/v1/pods", "")


@pytest.mark.parametrize("field", ["message", "reason"])
@pytest.mark.parametrize("value", [5, [], {"a": 1}, True])
def test_the_words_of_a_refusal_are_words(field: str, value: Any) -> None:
    for status in (401, 403, 404, 409, 410, 422, 429, 500):
        error = api_error("POST", status, json.dumps({field: value, "code": status}), None)
        assert isinstance(error.cause, str)
        assert isinstance(error.reason, str)


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize("body", ["<html>\n<b>No</b>", "", '{"message": "exceeded quota"}'])
def test_a_write_that_a_proxy_refuses_is_tried_again(status: int, body: str) -> None:
    error = api_error("POST", status, body, None)
    assert isinstance(error, BusyError)
    assert error.retryable
    assert error.exit_code == ExitCode.CLUSTER
    assert f"HTTP {status} is not the API server's answer" in str(error)


def test_a_write_that_the_api_server_refuses_is_a_refusal() -> None:
    body = json.dumps({"kind": "Status", "message": "denied by a webhook"})
    assert isinstance(api_error("POST", 403, body, None), AdmissionRefusedError)
