"""What a configuration comes to: how the engine renders, and how it reconciles."""

from dataclasses import dataclass

from engine.api.model import Config
from engine.cluster.client import Client
from engine.manager.options import Surroundings
from engine.reconcile.attempt_manifests import Rendering
from engine.reconcile.reconciler import Reconciler, Shown
from engine.reconcile.steps import Steps
from engine.reconcile.watches import Watches
from engine.render.templates import Templates


@dataclass(frozen=True, slots=True)
class Settings:
    """What changes when the configuration is read again."""

    reconciler: Reconciler
    rendering: Rendering


@dataclass(frozen=True, slots=True)
class SettingsMaker:
    """What stays the same meanwhile; `shown` is what was told of each job already."""

    client: Client
    watches: Watches
    source: str
    around: Surroundings
    shown: Shown

    def make(self, config: Config, templates: Templates) -> Settings:
        rendering = Rendering(templates, self.source, config.limits)
        steps = Steps(self.client, rendering, self.watches.pods, self.around.redactor)
        reconciler = Reconciler(
            self.client,
            steps,
            source=self.source,
            pull=config.pull,
            features=config.features,
            emit=self.around.emit,
            shown=self.shown,
        )
        return Settings(reconciler, rendering)
