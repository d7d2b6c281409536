"""What all tests share: the real cluster's fixtures."""

pytest_plugins = ["tests.cluster.fixtures"]
