"""What Kubernetes fills in where a manifest says nothing."""

GRACE_PERIOD = 30
"""Seconds that a pod may take to stop."""


def default_pull_policy(image: str) -> str:
    """Always for the tag `latest`, and where there is neither tag nor digest; else IfNotPresent."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
