"""What other tools call a job, as a JobSpec: pure functions from their YAML to ours."""

from engine.convert.conversion import Conversion
from engine.convert.gitlab import convert_pipeline
from engine.convert.kubernetes import convert_workload

__all__ = ["Conversion", "convert_pipeline", "convert_workload"]
