"""Services are ready before the main container starts, and are found by their names."""

from typing import Any

import pytest

from tests.support.engine import Engine
from tests.support.objects import Objects

pytestmark = [pytest.mark.only("real"), pytest.mark.timeout(300)]

SLOW = "mkdir /www && echo served > /www/index.html; sleep 5; exec httpd -f -p $PORT -h /www"
FETCHES = "wget -qO- http://web:8080/ && wget -qO- http://shop:8081/ > /handed/over\n"


@pytest.mark.parametrize("jobs", [4, pytest.param(20, marks=pytest.mark.soak)])
def test_main_starts_once_each_service_is_ready_and_reaches_it_by_its_name(
    engine: Engine, objects: Objects, jobs: int
) -> None:
    command = ["sh", "-c", SLOW]
    asks = ["wget", "-qO-", "http://127.0.0.1:8080/"]
    ready: tuple[dict[str, Any], ...] = (
        {"tcp": 8080}, {"exec": asks}, {"http": {"port": 8080}},
    )  # fmt: skip
    for number in range(jobs):
        web = {"name": "web", "image": engine.image, "command": command, "env": {"PORT": "8080"}}
        shop = {**web, "name": "shop", "env": {"PORT": "8081"}, "ready": {"tcp": 8081}}
        engine.spec(
            f"job-{number}",
            services=[{**web, "ready": ready[number % len(ready)]}, shop],
            volumes=[{"name": "handed", "emptyDir": {}, "mountPath": "/handed"}],
            script=f"{FETCHES}cat /handed/over\n",
        )
    engine.reconcile(ends=0)
    for number in range(jobs):
        assert objects.log(f"job-{number}") == "served\nserved\n"
