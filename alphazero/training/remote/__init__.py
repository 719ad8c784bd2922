"""Self-play on a cluster: workers elsewhere play, and the games that arrive are committed once, here."""

from alphazero.training.remote.workers import ClusterWorkers

__all__ = ["ClusterWorkers"]
