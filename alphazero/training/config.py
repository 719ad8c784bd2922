"""The settings of a run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, get_type_hints

from alphazero.errors import InvalidSetting, quote
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.settings import check_ranges
from alphazero.training.learner import LearnerConfig
from alphazero.training.replay_buffer import ReplayConfig
from alphazero.training.selfplay import SelfPlayConfig


@dataclass(frozen=True)
class GateConfig:
    """The match that decides whether the candidate takes over self-play."""

    enabled: bool = True
    """Play this match. Without it, every candidate takes over self-play."""
    threshold: float = 0.55
    """Lowest score that promotes the candidate; a draw counts half (Silver et al. 2017).
    In the last generation any score above 0.5 promotes it."""
    games: int = 100
    """Maximum number of games; the match ends as soon as its verdict is certain.
    In the last generation it is 400 or more, so that the run ends with the stronger net.
    It is fewer there if --minutes leaves less time."""
    simulations: int = 32
    """Simulations per ply."""

    def __post_init__(self) -> None:
        check_ranges(self, "gate.", threshold=(0, 1), games=(2, math.inf), simulations=(1, math.inf))


@dataclass(frozen=True)
class EvaluationConfig:
    """The matches at the end of a run."""

    opponents: tuple[str, ...] = ("random", "greedy", "minimax:4")
    """Contestants that the best network plays against."""
    games: int = 100
    """Games against each opponent; fewer, or none, if all matches would take more than a fifth of --minutes."""
    simulations: int = 100
    """Simulations per ply."""

    def __post_init__(self) -> None:
        check_ranges(self, "evaluation.", games=(1, math.inf), simulations=(1, math.inf))


@dataclass(frozen=True)
class RunConfig:
    """All settings of a run; a preset is one of these.

    >>> import alphazero as az
    >>> config = az.RunConfig(generations=5, search=az.SearchConfig(num_simulations=32))
    >>> config.minutes, config.search.num_simulations
    (0.0, 32)
    """

    generations: int = 20
    """Number of generations after which the run ends."""
    minutes: float = 0.0
    """Time limit in minutes: the run ends with the generation in which they are over; 0 = no limit.
    Slow games get smaller generations, so that the run ends in time.
    The matches at the end take a fifth of the minutes more: games that are not over by then are left out."""
    initial_net: str = ""
    """Net to begin with: a shipped net, a run folder, folder:12 or a checkpoint. Empty: an untrained net.
    If --net sizes differ, this net plays until a new network of those sizes passes the gate.
    The new network begins with this net's weights if none of its sizes is smaller."""
    keep: int = 100
    """Newest nets to keep on disk, plus at most as many older ones, evenly spaced; 0 keeps every net.
    The best net, and all that --resume needs, always stay."""
    cache_size: int = 1 << 20
    """Network evaluations that each thread caches; 0 = no cache.
    One takes about 60 bytes in a small game, and a thread's cache at most 256 MB."""
    net: Any = field(default_factory=NetConfig)
    """The sizes of the network: what the game's make_net takes, as a dataclass or a dict."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The search that chooses the moves of self-play."""
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    """The games that the network learns from."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """The window of recent games that samples are drawn from."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """The updates of the network."""
    gate: GateConfig = field(default_factory=GateConfig)
    """The match that decides whether the new network takes over self-play."""
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """The matches of the best network at the end of a run."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(RunConfig).items():
            if isinstance(kind, type) and is_dataclass(kind) and not isinstance(group := getattr(self, name), kind):
                raise InvalidSetting(f"{name} must be a {kind.__name__}, not {quote(group)}")
        if not (isinstance(self.net, dict) or (is_dataclass(self.net) and not isinstance(self.net, type))):
            raise InvalidSetting(
                f"net must hold settings by name, as a dataclass or a dict, not {quote(self.net, 100)}"
            )
        check_ranges(self, generations=(1, math.inf), minutes=(0, 1e9), keep=(0, math.inf), cache_size=(0, 1 << 26))

    @property
    def net_settings(self) -> dict[str, Any]:
        """The settings for `make_net`, as a checkpoint's card holds them."""
        return settings_by_name(self.net)


def settings_by_name(net: Any) -> dict[str, Any]:
    """The settings of a net as plain values, from a dataclass or a dict."""
    return dict(net) if isinstance(net, dict) else asdict(net)
