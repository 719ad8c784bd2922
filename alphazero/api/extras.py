"""The parts that need packages or folders which may not be here: the page in the browser, and a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting
from alphazero.game import Game
from alphazero.invocation import option
from alphazero.players.contestants import Contestant
from alphazero.settings import check_range

if TYPE_CHECKING:
    from alphazero.cluster.ray_cluster import RayCluster
    from alphazero.web.server import PageServer


def play_web(
    contestant: Contestant,
    game: Game | type[Game] | str | Path,
    port: int = 8080,
    *,
    runs: str | Path | None = None,
    wait: bool = True,
) -> PageServer:
    """Opens a page on this machine to play against a contestant and to analyse with it.

    `contestant` is a net, a Player, a function from a Position to an action, or a text as on the command line.
    `port`: 0 takes a free one. `runs` is a folder with runs to watch. With `wait` the page stays open until Ctrl-C or
    the stop button of a notebook; without, until `close()` of the server that is returned, whose `address` is the
    page's. Raises InvalidSetting if the port is taken.

    >>> import alphazero as az
    >>> with az.play_web("minimax:3", "tictactoe", port=0, wait=False) as page:
    ...     page.address.startswith("http://127.0.0.1:")
    True
    """
    check_range("port", port, 0, 65535)
    loaded = registry.tried(game)
    name = str(game) if isinstance(game, str | Path) else loaded.game.name
    server = make_server(port, name=name, loaded=loaded, given=[contestant], runs=None if runs is None else Path(runs))
    server.start()
    if wait:
        print(f"The page is at {server.address}")
        try:
            server.wait()
        finally:
            server.close()
    return server


def make_server(port: int, host: str = "127.0.0.1", **stage: Any) -> PageServer:
    """The server of a page that begins with that `Stage`; raises InvalidSetting, also if a package is missing."""
    try:
        from alphazero.web.engine import Engine, Stage
        from alphazero.web.server import PageServer
    except ModuleNotFoundError as error:
        raise InvalidSetting(
            f"the page needs the package {error.name}: install it by `pip install fastapi uvicorn websockets`"
        ) from error
    return PageServer(Engine(Stage(**stage)), port, host)


def cluster_at(address: str, workers: int | None, threads: int | None) -> RayCluster | None:
    """The cluster at that address, not connected yet; None without an address."""
    if workers is not None and not address:
        raise InvalidSetting(
            f"{option('cluster_workers')} needs {option('cluster')}, as in {option('cluster', 'auto')}"
        )
    if not address:
        return None
    try:
        from alphazero.cluster.ray_cluster import RayCluster
    except ModuleNotFoundError as error:
        raise InvalidSetting(f"{option('cluster')} needs the folder alphazero/cluster, which is not here") from error
    return RayCluster(address, workers, threads)
