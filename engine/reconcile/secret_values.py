"""Read the values behind fromEnv and fromFile; they stay in memory and go into the Secret alone."""

from collections.abc import Mapping
from pathlib import Path

from engine.api.model import Job, SecretRef
from engine.errors import Diagnostic
from engine.render.variables import SecretValues

_LARGEST = 1024 * 1024


class _UnresolvedError(Exception):
    """Why a value can't be had, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def resolve_secrets(
    job: Job, environment: Mapping[str, str]
) -> tuple[SecretValues, tuple[Diagnostic, ...]]:
    """Values of all secrets of `job`, and a problem for each that can't be had."""
    problems: list[Diagnostic] = []

    def value(secret: SecretRef) -> str:
        try:
            return _value(secret, Path(job.folder), environment)
        except _UnresolvedError as error:
            problems.append(Diagnostic(secret.place, error.message, error.hint))
            return ""

    variables = {name: value(secret) for name, secret in job.secrets.items()}
    passwords = tuple(value(credential.password) for credential in job.credentials)
    return SecretValues(variables, passwords), tuple(problems)


def _value(secret: SecretRef, folder: Path, environment: Mapping[str, str]) -> str:
    if secret.value is not None:
        return secret.value
    if secret.from_env is None:
        value = _read(folder, secret.from_file or "")
    elif (found := environment.get(secret.from_env)) is not None:
        value = found
    else:
        raise _UnresolvedError(
            f"fromEnv: the variable {secret.from_env} is not set",
            "set it in the engine's environment",
        )
    if "\0" in value:
        raise _UnresolvedError("the value contains a NUL character", "encode it, say as base64")
    return value


def _read(folder: Path, name: str) -> str:
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve(strict=True)
        if not path.is_relative_to(root):
            raise _UnresolvedError(
                f"fromFile: {name} leads out of the spec's folder",
                "a symbolic link may not point outside",
            )
        if not (path.is_file() or path.is_dir()):
            raise _UnresolvedError(f"fromFile: {name} is not a file")
        if path.stat().st_size > _LARGEST:
            raise _UnresolvedError(f"fromFile: {name} is larger than 1 MiB")
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise _UnresolvedError(f"fromFile: there is no file {name}") from None
    except UnicodeDecodeError:
        raise _UnresolvedError(
            f"fromFile: {name} is not UTF-8 text", "encode it, say as base64"
        ) from None
    except OSError as error:
        raise _UnresolvedError(f"fromFile: {name}: {error.strerror}") from None
    except RuntimeError:
        raise _UnresolvedError(f"fromFile: {name} is a loop of symbolic links") from None
