"""What Kubernetes fills in where a manifest says nothing."""

GRACE_PERIOD = 30
"""Seconds that a pod may take to stop."""


def default_pull_policy(image: str) -> str:
    """Always for the tag `latest`, and where there is neither tag nor digest; else IfNotPresent."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def allowed_pull_policy(image: str, allowed: tuple[str, ...]) -> str:
    """The default one, if it is among those that are allowed; else the first of these."""
    policy = default_pull_policy(image)
    return policy if policy in allowed else allowed[0]
