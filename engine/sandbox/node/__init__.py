"""The simulated node: it schedules, "pulls" and "runs" pods, and says that it runs nothing."""
