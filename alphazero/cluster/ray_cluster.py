"""A Ray cluster as runs and tournaments know it: other machines that play their games."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from alphazero.catalogue.loaded import LoadedGame
from alphazero.cluster.connection import Cluster
from alphazero.cluster.matches import Spread
from alphazero.cluster.self_play import ClusterWorkers
from alphazero.errors import InvalidSetting
from alphazero.invocation import option
from alphazero.tournaments.folder import Tournament
from alphazero.tournaments.tournament import Play
from alphazero.training.plan import Assignment, RunPlan, cannot_be_imported


class RayCluster(Cluster):
    """A cluster that plays the games of a run or of a tournament; open it by `with`."""

    def check(self, plan: RunPlan) -> None:
        """Raises InvalidSetting if a run cannot be played there."""
        if plan.deterministic:
            raise InvalidSetting(
                f"{option('deterministic')} and {option('cluster')} exclude each other: which games arrive first "
                "depends on the clock and the network"
            )
        if len(plan.devices) > 1:
            raise InvalidSetting(
                f"with {option('cluster')} a net learns on one device: choose it by {option('device')}"
            )
        _check_game(plan.loaded)

    def make_workers(self, assignment: Assignment) -> ClusterWorkers:
        return ClusterWorkers(self, assignment)

    @contextmanager
    def spread(self, tournament: Tournament, loaded: LoadedGame, device: str) -> Iterator[Play]:
        """Plays the games of a tournament, nets on `device`; raises InvalidSetting if that cannot be done there."""
        _check_game(loaded)
        with self, closing(Spread(self, tournament, loaded, device)) as spread:
            yield spread.play


def _check_game(loaded: LoadedGame) -> None:
    if loaded.load_again is None:
        raise InvalidSetting(
            f"{cannot_be_imported(loaded)}, and {option('cluster')} needs other processes: put the game into a module "
            "(a .py file)"
        )
