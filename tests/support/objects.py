"""What a test's namespace holds, read from the API and never through the engine."""

from tests.support.api import Api, Object


class Objects:
    """Reads of one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def pods(self) -> list[Object]:
        return self.api.list("pods", self.namespace)

    def pod(self, job: str) -> Object:
        """The one pod of a job."""
        (pod,) = self.api.list("pods", self.namespace, labels=f"jobs.engine/job={job}")
        return pod

    def owned(self) -> list[str]:
        """kind/name of the engine's own Secrets and ConfigMaps, without records."""
        labels = "app.kubernetes.io/managed-by=engine,jobs.engine/component!=record"
        return [
            f"{kind}/{item['metadata']['name']}"
            for kind in ("secrets", "configmaps")
            for item in self.api.list(kind, self.namespace, labels=labels)
        ]

    def log(self, job: str, container: str = "main") -> str:
        return self.api.logs(self.namespace, self.pod(job)["metadata"]["name"], container)

    def wait_until_ungated(self, job: str) -> Object:
        """The job's pod once it may start, and whatever came of it since."""

        def ungated() -> Object | None:
            found = self.api.list("pods", self.namespace, labels=f"jobs.engine/job={job}")
            return next((p for p in found if not p["spec"].get("schedulingGates")), None)

        return self.api.wait(ungated, f"pod of {job} without its gate")

    def wait_until_running(self, job: str) -> Object:
        def running() -> Object | None:
            found = self.api.list("pods", self.namespace, labels=f"jobs.engine/job={job}")
            return next((p for p in found if p["status"]["phase"] == "Running"), None)

        return self.api.wait(running, f"running pod of {job}")

    def wait_until_over(self, job: str) -> Object:
        """The job's one pod in its final phase, which follows the end of its container."""

        def over() -> Object | None:
            pod = self.pod(job)
            return pod if pod["status"]["phase"] in ("Succeeded", "Failed") else None

        return self.api.wait(over, f"final phase of the pod of {job}")

    def wait_until_clean(self) -> None:
        """Until the garbage collector has taken what the pods owned."""
        self.api.wait(lambda: not self.owned(), "end of the owned objects")
