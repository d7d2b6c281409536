"""What all tests share: the real cluster's fixtures, and how long Hypothesis searches."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.cluster.fixtures", "tests.cluster.helm"]

settings.register_profile(
    "engine",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("engine")
