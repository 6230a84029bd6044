"""All sources of fetched models: who pins which, and who brings its files."""

from dataclasses import dataclass

from gpulayers.engine.registry import Patience, Registry
from gpulayers.lock.model import LockedModel
from gpulayers.lock.weights.artifact import Artifacts
from gpulayers.lock.weights.hub import Hub
from gpulayers.lock.weights.store import Carriers, Store
from gpulayers.matrix.model import FetchedModel, HubModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The sources, and the store that their files come to."""

    hub: Hub
    artifacts: Artifacts
    store: Store

    def pin(self, model: FetchedModel) -> LockedModel:
        """The entry of a model in the lock, as its source has it now.

        Raises: RemoteError: the source did not answer; ProjectError: there is no such thing.
        """
        if isinstance(model, HubModel):
            with self.store.alone():
                return self.hub.pin(model)
        return self.artifacts.pin(model)

    @property
    def carriers(self) -> Carriers:
        """Who brings files."""
        return Carriers(by_kind={"huggingface": self.hub, "oci": self.artifacts})


def sources(store: Store, registry: Registry, patience: Patience | None = None) -> Weights:
    """The real ones."""
    hub = Hub(store=store, patience=patience or Patience())
    return Weights(hub=hub, artifacts=Artifacts(registry=registry, store=store), store=store)
