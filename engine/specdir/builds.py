"""Jobs of one version of a file under the defaults that hold for it, built once for each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from engine.api.build import build_job, check_job, layers_of, namespace_problems
from engine.api.load import second_job
from engine.api.model import Config, Job
from engine.api.parse import ParsedFile, parse_file
from engine.api.yaml_reader import Document
from engine.errors import Place, Problem, Severity
from engine.refs import JobKey
from engine.specdir.version import Version

Layers = tuple[Document, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """What came of building: `good` only if every job of the file did."""

    version: Version
    layers: Layers
    config: Config
    jobs: Mapping[JobKey, Job]
    problems: tuple[Problem, ...]
    good: bool


@dataclass(frozen=True, slots=True)
class Namespaces:
    """`given` goes before the defaults' namespace, `context` is for jobs that have none still."""

    given: str
    context: str


class Builds:
    """Keeps what was built last time, so that only what changed is built again."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces
        self._expected: dict[str, Document] = {}
        self._layers: dict[str, Layers] = {}
        self._config = Config()
        self._before: dict[tuple[Version, tuple[int, ...]], Built] = {}
        self._now: dict[tuple[Version, tuple[int, ...]], Built] = {}

    def expect(self, versions: Iterable[Version], config: Config) -> None:
        """What will hold most likely for the files that are offered next."""
        self._expected = {
            version.source.folder: version.defaults
            for version in versions
            if version.defaults is not None and not version.broken
        }
        self._layers = {}
        self._config = config

    def offer(self, version: Version, parsed: ParsedFile) -> None:
        """Build a version that has just been parsed as it will most likely be asked for."""
        folder = version.source.folder
        if folder not in self._layers:
            self._layers[folder] = layers_of(folder, self._expected)
        self.get(version, self._layers[folder], self._config, parsed)

    def get(
        self, version: Version, layers: Layers, config: Config, parsed: ParsedFile | None = None
    ) -> Built:
        """Guarantees: the same object for the same arguments, if one was made in this round or
        the one before.
        """
        key = version, tuple(map(id, layers))
        built = self._now.get(key) or self._before.get(key)
        if built is None or built.config is not config:
            try:
                parsed = parsed or parse_file(version.source, config.kubernetes)
                built = _build(version, parsed, layers, config, self._namespaces)
            except Exception as error:  # noqa: BLE001 - one file must not stop the others
                built = _crashed(version, layers, config, error)
        self._now[key] = built
        return built

    def next_round(self) -> None:
        """Forget what the round that ends here had no use for."""
        self._before, self._now = self._now, {}


def _build(
    version: Version, parsed: ParsedFile, layers: Layers, config: Config, namespaces: Namespaces
) -> Built:
    jobs: dict[JobKey, Job] = {}
    problems: list[Problem] = []
    for document in parsed.jobs:
        job, found = build_job(document, parsed.folder, layers, config, namespaces.given)
        problems += found
        if job is None:
            continue
        if not job.namespace:
            job = replace(job, namespace=namespaces.context)
            problems += namespace_problems((job,), config.limits)
        first = jobs.setdefault(job.key, job)
        if first is not job:
            problems.append(second_job(job, first.place))
    for document in parsed.invalid_jobs:
        problems += check_job(document, layers, config, namespaces.given)
    good = not any(problem.severity is Severity.ERROR for problem in problems)
    return Built(version, layers, config, jobs, tuple(problems), good)


def _crashed(version: Version, layers: Layers, config: Config, error: Exception) -> Built:
    """A file that the engine itself stumbles over is in error; the others go on."""
    where = Place(version.source.file)
    problem = Problem(where, f"the engine failed on this file: {type(error).__name__}: {error}")
    return Built(version, layers, config, {}, (problem,), good=False)
