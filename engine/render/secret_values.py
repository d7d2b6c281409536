"""Read the values behind fromEnv and fromFile; they stay in memory and go into the Secret alone.

A file is below the spec's folder, whatever links are put there meanwhile.
"""

import errno
import os
import re
import stat
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from engine.api.checks import refused_source
from engine.api.model import Job, Limits, SecretRef
from engine.errors import Diagnostic
from engine.files import NOT_A_FILE, read_regular
from engine.render.manifests import SecretValues

_LARGEST = 1024 * 1024
_ENCODE = "encode it, say as base64"
_MOST_LINKS = 40
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KUBELETS = re.compile(r"\.\.(data|[0-9]{4}_[0-9_.]+)")
"""A mounted ConfigMap or Secret is made of links: `token` to `..data/token`, `..data` to a folder
`..2026_01_01_12_00_00.123456789`."""


class _UnresolvedError(Exception):
    """Why a value can't be had, and perhaps what to do about it: the words of a Diagnostic."""


def resolve_secrets(
    job: Job, environment: Mapping[str, str], limits: Limits
) -> tuple[SecretValues, tuple[Diagnostic, ...]]:
    """Values of all secrets of `job`, and a problem for each that can't be had.

    The limits are asked once more: a job stays active when they have been tightened.
    """
    values: list[str] = []
    problems: list[Diagnostic] = []
    read: dict[object, str] = {}
    room = _LARGEST
    for ref in job.secrets:
        source = ref.source, ref.text
        try:
            # Jobs that have the same value share it.
            value = read.get(source) or sys.intern(_value(ref, job, environment, limits))
            room -= len(value.encode(errors="surrogatepass"))
        except _UnresolvedError as error:
            problems.append(Diagnostic(ref.place, *error.args))
            value = ""
        if room < 0:
            words = "the job's secrets are together larger than the 1 MiB that a Secret holds"
            hint = "put large files into a volume or an image"
            problems, values = [Diagnostic(ref.place, words, hint)], [""] * len(job.secrets)
            break
        values.append(value)
        read[source] = value
    named = zip(job.secrets, values, strict=True)
    variables = {ref.variable: value for ref, value in named if ref.variable}
    return SecretValues(variables, tuple(values[len(variables) :])), tuple(problems)


def texts_to_mask(job: Job, secrets: SecretValues) -> Iterator[str]:
    """Every value, and each registry's login as Docker writes it."""
    yield from (*secrets.variables.values(), *secrets.passwords)
    for login, password in zip(job.logins, secrets.passwords, strict=True):
        if password:
            yield f"{login['username']}:{password}"


def no_room(job: Job) -> Diagnostic:
    """The problem of a job whose secrets the engine has no room for."""
    words = "there is no room for this job's secrets: those of a source are bounded as a whole"
    return Diagnostic(job.place, words, "limits.maxSourceBytes")


def _value(secret: SecretRef, job: Job, environment: Mapping[str, str], limits: Limits) -> str:
    field, name = secret.source, secret.text
    if field == "value":
        return name
    if refused := refused_source(field, name, limits):
        raise _UnresolvedError(*refused)
    try:
        if field == "fromFile":
            value = _read(job, name)
        elif name in environment:
            value = environment[name]
        else:
            hint = "set it in the engine's environment"
            raise _UnresolvedError(f"fromEnv: the variable {name} is not set", hint)
        value.encode()
    except UnicodeError:
        raise _UnresolvedError(f"{field}: {name} is not UTF-8 text", _ENCODE) from None
    if "\0" in value:
        raise _UnresolvedError("the value contains a NUL character", _ENCODE)
    return value


def _read(job: Job, name: str) -> str:
    """Errors: UnicodeDecodeError; _UnresolvedError for all else."""
    try:
        value = _read_below(job.root, job.folder, name)
    except FileNotFoundError:
        raise _UnresolvedError(f"fromFile: there is no file {name}") from None
    except OSError as error:
        raise _UnresolvedError(f"fromFile: {name}: {error.strerror}") from None
    if len(value) > _LARGEST:
        raise _UnresolvedError(f"fromFile: {name} is larger than 1 MiB")
    return value.decode()


def _read_below(root: str, folder: str, name: str) -> bytes:
    """The file `name` in `folder`, which is `root` or below it, or enough to show it is too large.

    Guarantees: each part of the way below `root` is opened by the descriptor of its folder, and
    none through a link; the target of a link is opened the same way. So no swap of a link leads
    elsewhere, and the file that was checked is the file that is read. A pipe is not waited for.
    Errors: OSError; _UnresolvedError for a link that leads out, or to a hidden file.
    """
    outside = _UnresolvedError(
        f"fromFile: {name} leads out of the spec's folder, or to a hidden file",
        "a symbolic link must be relative and may point at neither",
    )
    with ExitStack() as opened:

        def enter(path: str, below: int | None = None) -> int:
            flags = _FOLDER if below is None else _FOLDER | os.O_NOFOLLOW
            descriptor = os.open(path, flags, dir_fd=below)
            opened.callback(os.close, descriptor)
            return descriptor

        here = enter(root)
        for part in _parts(folder.removeprefix(root)):
            here = enter(part, here)
        way, left, links = [here], deque(_parts(name)), 0
        while left:
            part = left.popleft()
            if part == os.pardir and len(way) > 1:
                way.pop()
            elif part.startswith(".") and not _KUBELETS.fullmatch(part):
                raise outside
            elif stat.S_ISLNK(os.stat(part, dir_fd=way[-1], follow_symlinks=False).st_mode):
                target = os.readlink(part, dir_fd=way[-1])
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                if target.startswith("/"):
                    raise outside
                left.extendleft(reversed(_parts(target)))
            elif left:
                way.append(enter(part, way[-1]))
            else:
                return read_regular(part, _LARGEST + 1, folder=way[-1], follow_symlinks=False)
        raise OSError(0, NOT_A_FILE)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
