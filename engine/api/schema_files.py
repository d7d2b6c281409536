"""The shipped JSON Schemas: `apiVersion` and `kind` select the file, so that versions can live
side by side.
"""

from engine.package_data import resource_dir

API_VERSION = "jobs.engine/v1alpha1"
JOB_SPEC = "JobSpec"
JOB_DEFAULTS = "JobDefaults"
ENGINE_CONFIG = "EngineConfig"

SCHEMA_FILES = {
    (API_VERSION, JOB_SPEC): "job.v1alpha1.schema.json",
    (API_VERSION, JOB_DEFAULTS): "jobdefaults.v1alpha1.schema.json",
    (API_VERSION, ENGINE_CONFIG): "engineconfig.v1alpha1.schema.json",
}


def schema_text(api_version: str, kind: str) -> str:
    """The schema file of `kind` in `api_version`; KeyError when there is none."""
    name = SCHEMA_FILES[api_version, kind]
    return (resource_dir("schemas") / name).read_text(encoding="utf-8")
