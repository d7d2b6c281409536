"""Which specs are read, and how, as the command line says it."""

from pathlib import Path

from msgspec import Struct

STDIN = "-"
"""The path that means standard input."""


class SpecOptions(Struct, frozen=True, kw_only=True):
    """A field for each option of commands that read specs."""

    paths: tuple[str, ...] = ()
    namespace: str = ""
    """Goes before that of JobDefaults, for specs that name none."""
    context_namespace: str = ""
    """For specs that have none still."""
    defaults_root: Path | None = None
    """The folder from which JobDefaults count downwards; None for the named paths."""
    config: Path | None = None
    """The operator's engine.yaml."""
    templates: Path | None = None
    """The user's own templates."""
    kubernetes_schema: Path | None = None
    allow_secret_env: tuple[str, ...] = ()
    strict: bool = False
    """Whether documents of other API groups are errors."""
    allow_empty: bool = False
    """Whether there may be no specs at all."""
    from_cluster: bool = False
    """Whether JobSpec objects are read in place of files."""
    all_namespaces: bool = False
    """Whether those of all namespaces are."""
    selector: str = ""
    """Labels of these objects."""

    @property
    def home(self) -> str:
        """The namespace of specs that name none, once the context's is known."""
        return self.namespace or self.context_namespace

    @property
    def objects(self) -> tuple[str, ...]:
        """Namespaces whose JobSpec objects are meant, "" for all; none for files."""
        if not self.from_cluster:
            return ()
        return ("",) if self.all_namespaces else (self.home,)
