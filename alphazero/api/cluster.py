"""The way to the wing `cluster`, which nothing else loads: without that folder, everything but a cluster works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alphazero.errors import InvalidSetting
from alphazero.invocation import option

if TYPE_CHECKING:
    from alphazero.cluster.ray_cluster import RayCluster


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
