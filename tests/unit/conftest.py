"""Hypothesis is kept short: the whole of tests/unit is run on every save."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "unit",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("unit")
