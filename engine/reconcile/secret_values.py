"""Read the values behind fromEnv and fromFile; they stay in memory and go into the Secret alone."""

from collections.abc import Mapping
from pathlib import Path

from engine.api.model import Job, SecretRef
from engine.errors import Problem
from engine.render.variables import SecretValues

_LARGEST = 1024 * 1024


def resolve_secrets(
    job: Job, environment: Mapping[str, str]
) -> tuple[SecretValues, tuple[Problem, ...]]:
    """Values of all secrets of `job`, and a problem for each that can't be had."""
    problems: list[Problem] = []
    variables = {name: _value(s, job, environment, problems) for name, s in job.secrets.items()}
    passwords = tuple(_value(c.password, job, environment, problems) for c in job.credentials)
    return SecretValues(variables, passwords), tuple(problems)


def _value(
    source: SecretRef, job: Job, environment: Mapping[str, str], problems: list[Problem]
) -> str:
    if source.value is not None:
        return source.value
    if source.from_env is not None:
        value = environment.get(source.from_env)
        if value is None:
            problems.append(
                Problem(
                    source.place,
                    f"fromEnv: the variable {source.from_env} is not set",
                    "set it in the engine's environment",
                )
            )
        return _checked(value or "", source, problems)
    return _checked(_file(source, Path(job.folder), problems), source, problems)


def _file(source: SecretRef, folder: Path, problems: list[Problem]) -> str:
    name = source.from_file or ""
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve(strict=True)
        if not path.is_relative_to(root):
            problems.append(
                Problem(
                    source.place,
                    f"fromFile: {name} leads out of the spec's folder",
                    "a symbolic link may not point outside",
                )
            )
            return ""
        if not (path.is_file() or path.is_dir()):
            problems.append(Problem(source.place, f"fromFile: {name} is not a file"))
            return ""
        if path.stat().st_size > _LARGEST:
            problems.append(Problem(source.place, f"fromFile: {name} is larger than 1 MiB"))
            return ""
        return path.read_bytes().decode()
    except FileNotFoundError:
        problems.append(Problem(source.place, f"fromFile: there is no file {name}"))
    except UnicodeDecodeError:
        problems.append(
            Problem(source.place, f"fromFile: {name} is not UTF-8 text", "encode it, say as base64")
        )
    except OSError as error:
        problems.append(Problem(source.place, f"fromFile: {name}: {error.strerror}"))
    except RuntimeError:
        problems.append(Problem(source.place, f"fromFile: {name} is a loop of symbolic links"))
    return ""


def _checked(value: str, source: SecretRef, problems: list[Problem]) -> str:
    if "\0" in value:
        problems.append(
            Problem(source.place, "the value contains a NUL character", "encode it, say as base64")
        )
    return value
