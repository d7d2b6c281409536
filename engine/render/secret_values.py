"""Read the values behind fromEnv and fromFile; they stay in memory and go into the Secret alone."""

import errno
from collections.abc import Iterator, Mapping

from engine.api.checks import refused_source
from engine.api.model import Job, Limits, SecretRef
from engine.errors import Diagnostic
from engine.render.secret_file import OutsideError, read_below
from engine.render.variables import SecretValues

_LARGEST = 1024 * 1024
_ENCODE = "encode it, say as base64"


class _UnresolvedError(Exception):
    """Why a value can't be had, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def resolve_secrets(
    job: Job, environment: Mapping[str, str], limits: Limits
) -> tuple[SecretValues, tuple[Diagnostic, ...]]:
    """Values of all secrets of `job`, and a problem for each that can't be had.

    The limits are asked once more: a job stays active when they have been tightened.
    """
    problems: list[Diagnostic] = []

    def value(secret: SecretRef) -> str:
        try:
            return _value(secret, job, environment, limits)
        except _UnresolvedError as error:
            problems.append(Diagnostic(secret.place, error.message, error.hint))
            return ""

    variables = {name: value(secret) for name, secret in job.secrets.items()}
    passwords = tuple(value(credential.password) for credential in job.credentials)
    return SecretValues(variables, passwords), tuple(problems)


def texts_to_mask(job: Job, secrets: SecretValues) -> Iterator[str]:
    """Every value, and each registry's login as Docker writes it."""
    yield from secrets.all
    for login, password in zip(job.credentials, secrets.passwords, strict=True):
        if password:
            yield f"{login.username}:{password}"


def _value(secret: SecretRef, job: Job, environment: Mapping[str, str], limits: Limits) -> str:
    if secret.value is not None:
        return secret.value
    if secret.from_env is not None:
        field, name = "fromEnv", secret.from_env
    else:
        field, name = "fromFile", secret.from_file or ""
    if refused := refused_source(field, name, limits):
        raise _UnresolvedError(*refused)
    if field == "fromFile":
        value = _read(job, name)
    elif name in environment:
        value = environment[name]
    else:
        hint = "set it in the engine's environment"
        raise _UnresolvedError(f"fromEnv: the variable {name} is not set", hint)
    if "\0" in value:
        raise _UnresolvedError("the value contains a NUL character", _ENCODE)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _UnresolvedError("the value is not UTF-8 text", _ENCODE) from None
    return value


def _read(job: Job, name: str) -> str:
    try:
        value = read_below(job.root, job.folder, name, _LARGEST + 1)
    except OutsideError:
        raise _UnresolvedError(
            f"fromFile: {name} leads out of the spec's folder, or to a hidden file",
            "a symbolic link must be relative and may point at neither",
        ) from None
    except FileNotFoundError:
        raise _UnresolvedError(f"fromFile: there is no file {name}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _UnresolvedError(f"fromFile: {name} is a loop of symbolic links") from None
        raise _UnresolvedError(f"fromFile: {name}: {error.strerror}") from None
    if len(value) > _LARGEST:
        raise _UnresolvedError(f"fromFile: {name} is larger than 1 MiB")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _UnresolvedError(f"fromFile: {name} is not UTF-8 text", _ENCODE) from None
