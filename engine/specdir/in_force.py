"""From the versions of all files to what is in force: a file holds as a whole, or its last good
version does.
"""

import os
from collections.abc import Mapping

from engine.api.build import layers_of
from engine.api.load import second_job
from engine.api.model import Config, Job
from engine.api.parse import second_defaults
from engine.api.yaml_reader import Document
from engine.errors import Place, Problem
from engine.refs import JobKey
from engine.specdir.builds import Builds, Built, Layers
from engine.specdir.good import Good, InForce, renewed
from engine.specdir.version import Version


def settle(
    versions: Mapping[str, Version], before: Mapping[str, Good], config: Config, builds: Builds
) -> InForce:
    """What of `versions` comes into force, when `before` is.

    Guarantees: of two files that claim one job, or the defaults of one folder, the one in force
    stays, else the first by place. Below a folder whose JobDefaults were never good, nothing new
    comes into force: a job must not run with settings that are not meant. The result doesn't
    depend on the order of `versions`.
    """
    state = _Round(versions, before, config, builds)
    while state.refuse():
        pass
    builds.next_round()
    return state.result()


class _Round:
    """Starts from every new version, and goes back to the last good one of file after file.

    Each step refuses at least one more file, so that it ends.
    """

    def __init__(
        self,
        versions: Mapping[str, Version],
        before: Mapping[str, Good],
        config: Config,
        builds: Builds,
    ) -> None:
        self._versions = dict(sorted(versions.items()))
        self._before = before
        self._config = config
        self._builds = builds
        self._refused = {key for key, version in self._versions.items() if version.broken}
        self._blind = {key for key in self._refused if self._hides_defaults(key)}
        self._problems: list[Problem] = []
        self._built: dict[str, Built] = {}

    def refuse(self) -> bool:
        """One step; whether there was anything to refuse."""
        steps = (self._second_defaults, self._waiting, self._failing, self._second_jobs)
        for step in steps:
            found = step()
            if found:
                self._refused |= found
                return True
        return False

    def result(self) -> InForce:
        files: dict[str, Good] = {}
        for key in self._versions:
            if key not in self._refused:
                files[key] = renewed(self._before.get(key), self._built[key])
            elif key in self._before:
                files[key] = self._before[key]
        problems = [*self._problems]
        for version in self._versions.values():
            problems += version.problems
        for built in self._built.values():
            problems += built.problems
        for key in self._blind:
            message = "jobs in and below this folder wait until this file is mended"
            problems.append(Problem(Place(self._versions[key].source.file), message))
        jobs = {key: job for good in files.values() for key, job in good.jobs.items()}
        return InForce(files, jobs, tuple(problems), unknown=bool(self._refused - set(files)))

    def _second_defaults(self) -> set[str]:
        claims: dict[str, list[tuple[str, Document]]] = {}
        for key in self._versions:
            document = self._defaults(key)
            if document is not None:
                claims.setdefault(self._versions[key].source.folder, []).append((key, document))
        losers: set[str] = set()
        for claimed in claims.values():
            if len(claimed) > 1:
                holder, first = next(
                    (claim for claim in claimed if self._has_defaults(claim[0])), claimed[0]
                )
                for key, document in claimed:
                    if key != holder and key not in self._refused:
                        losers.add(key)
                        self._problems.append(second_defaults(document, first))
        return losers

    def _waiting(self) -> set[str]:
        below = self._below_blind()
        if not below:
            return set()
        return {
            key for key in self._versions if key not in self._refused and self._is_in(key, below)
        }

    def _failing(self) -> set[str]:
        """Files that can't be built; first those whose defaults may be the others' trouble."""
        below = self._below_blind()
        defaults = {
            self._versions[key].source.folder: document
            for key in self._versions
            if (document := self._defaults(key)) is not None
        }
        layers: dict[str, Layers] = {}
        self._built = {}
        for key, version in self._versions.items():
            folder = version.source.folder
            if not version.readable or (below and self._is_in(key, below)):
                continue
            if folder not in layers:
                layers[folder] = layers_of(folder, defaults)
            self._built[key] = self._builds.get(version, layers[folder], self._config)
        failing = {k for k, b in self._built.items() if not b.good and k not in self._refused}
        with_defaults = {key for key in failing if self._versions[key].defaults is not None}
        if not with_defaults:
            return failing
        depths = {key: self._versions[key].source.folder.count(os.sep) for key in with_defaults}
        outermost = {key for key in with_defaults if depths[key] == min(depths.values())}
        self._blind |= {key for key in outermost if self._hides_defaults(key)}
        return outermost

    def _second_jobs(self) -> set[str]:
        """Files that claim a job in force elsewhere; only then those that come second by place."""
        claims: dict[JobKey, list[tuple[str, Job]]] = {name: [] for name in self._contested()}
        if not claims:
            return set()
        for key in self._versions:
            for name, job in self._jobs(key).items():
                if name in claims:
                    claims[name].append((key, job))
        held = {n: [c for c in claimed if self._has_job(c[0], n)] for n, claimed in claims.items()}
        losers: set[str] = set()
        for name, claimed in claims.items():
            if held[name] or not any(held.values()):
                holder, first = (held[name] or sorted(claimed, key=lambda c: c[1].place))[0]
                for key, job in claimed:
                    if key != holder and key not in self._refused:
                        losers.add(key)
                        self._problems.append(second_job(job, first.place))
        return losers

    def _contested(self) -> set[JobKey]:
        owners: dict[JobKey, str] = {}
        return {
            name
            for key in self._versions
            for name in self._jobs(key)
            if owners.setdefault(name, key) != key
        }

    def _defaults(self, key: str) -> Document | None:
        if key not in self._refused:
            return self._versions[key].defaults
        return self._before[key].built.version.defaults if key in self._before else None

    def _jobs(self, key: str) -> Mapping[JobKey, Job]:
        if key not in self._refused:
            return self._built[key].jobs
        return self._before[key].jobs if key in self._before else {}

    def _has_defaults(self, key: str) -> bool:
        before = self._before.get(key)
        return before is not None and before.built.version.defaults is not None

    def _has_job(self, key: str, name: JobKey) -> bool:
        before = self._before.get(key)
        return before is not None and name in before.jobs

    def _hides_defaults(self, key: str) -> bool:
        return key not in self._before and self._versions[key].may_hold_defaults

    def _below_blind(self) -> frozenset[str]:
        return frozenset(self._versions[key].source.folder for key in self._blind)

    def _is_in(self, key: str, folders: frozenset[str]) -> bool:
        own = self._versions[key].source.folder
        return any(own == folder or own.startswith(folder + os.sep) for folder in folders)
