"""The settings of a run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, get_type_hints

from alphazero.errors import InvalidSetting, quote
from alphazero.nets.resnet import NetConfig
from alphazero.search.mcts import SearchConfig
from alphazero.settings import check_ranges


@dataclass(frozen=True)
class SelfPlayConfig:
    """The games that the network learns from."""

    games_per_generation: int = 400
    """Games per generation; fewer if they would take more than a tenth of --minutes."""
    num_slots: int = 256
    """Games played at once by each thread; more keep the network busier and use more memory.
    On a GPU the program chooses the number itself, except with --deterministic."""
    temperature: float = 1.0
    """The first actions of a game are drawn in proportion to visits^(1/temperature).
    No effect with sequential halving."""
    temperature_plies: int = 12
    """Plies played at `temperature`; later ones at `final_temperature`."""
    final_temperature: float = 0.25
    """Temperature of all later plies; 0 plays the most visited action."""
    random_plies: int = 0
    """Each game begins with random plies: 0 to this many, all equally likely. They give no samples.
    No effect in games with dice."""
    epsilon: float = 0.0
    """Each game draws its own share of random plies, between 0 and this, to show the network what mistakes cost.
    Value targets do not look past such a ply (Watkins 1989)."""
    epsilon_after: int = 0
    """Games of the run before `epsilon` takes effect; by then the search's values should be good."""
    td_lambda: float = 0.9
    """Lambda of the value target, the lambda-return (Sutton 1988) of the search's values and the game's result.
    With 1 it is the result alone, with 0 the search's value of the position alone."""
    td_lambda_after: int = 0
    """Games of the run over which lambda falls from 1 to `td_lambda`, slowly at first: values know little then."""


@dataclass(frozen=True)
class ReplayConfig:
    """The window of samples that the network learns from."""

    window_start: int = 4
    """Generations in the window at first."""
    window_growth: float = 0.5
    """Growth of the window, in generations per generation. Below 1, the first, worst games leave while it grows."""
    window_max: int = 20
    """Maximum number of generations in the window."""
    merge: bool = True
    """Keep one sample of equal positions, with the mean of their targets; mirror images count as equal."""


@dataclass(frozen=True)
class LearnerConfig:
    """The settings of learning."""

    batch_size: int = 256
    """Samples per update; the whole window if that has fewer."""
    learning_rate: float = 3e-3
    """Learning rate of the first 70% of the run, by generations or minutes, whichever is further."""
    final_learning_rate: float = 2e-4
    """Learning rate towards which the rate falls linearly, once per generation, from 70% of the run on.
    A generation after the last one would reach it."""
    warmup_updates: int = 50
    """Updates over which the rate rises from 0 in the first generation."""
    weight_decay: float = 1e-4
    """Decoupled decay of matrices and filters (Loshchilov and Hutter 2019)."""
    max_gradient_norm: float = 1.0
    """Longer gradients are scaled down to this norm."""
    ema_decay: float = 0.99
    """Decay per update of the moving average of the weights; the average plays."""
    sample_reuse: float = 4.0
    """Samples drawn from the window for each new sample.
    Equal positions are merged into one sample, which is then drawn more often."""


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


@dataclass(frozen=True)
class EvaluationConfig:
    """The matches at the end of a run."""

    opponents: tuple[str, ...] = ("random", "greedy", "minimax:4")
    """Contestants that the best network plays against."""
    games: int = 100
    """Games against each opponent; fewer, or none, if all matches would take more than a fifth of --minutes."""
    simulations: int = 100
    """Simulations per ply."""


LIMITS: dict[str, dict[str, tuple[float, float]]] = {
    "self_play": {
        "games_per_generation": (1, 1 << 24), "num_slots": (1, 1 << 16), "temperature": (0, 100),
        "temperature_plies": (0, 1 << 16), "final_temperature": (0, 100), "random_plies": (0, 1 << 16),
        "epsilon": (0, 1), "epsilon_after": (0, 1 << 48), "td_lambda": (0, 1),
        "td_lambda_after": (0, 1 << 48),
    },
    "replay": {"window_start": (1, math.inf), "window_growth": (0, 1e6)},
    "learner": {
        "batch_size": (2, 1 << 20), "learning_rate": (1e-8, 10), "final_learning_rate": (0, 10),
        "warmup_updates": (0, 1 << 20), "weight_decay": (0, 10), "max_gradient_norm": (1e-6, 1e6),
        "ema_decay": (0, 0.999999), "sample_reuse": (1e-3, 1e3),
    },
    "gate": {"threshold": (0, 1), "games": (2, math.inf), "simulations": (1, math.inf)},
    "evaluation": {"games": (1, math.inf), "simulations": (1, math.inf)},
}  # fmt: skip
"""The lowest and the highest value of each setting of a group."""


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
        for name, limits in LIMITS.items():
            check_ranges(getattr(self, name), f"{name}.", **limits)
        check_ranges(self.replay, "replay.", window_max=(self.replay.window_start, math.inf))
        check_ranges(self, generations=(1, math.inf), minutes=(0, 1e9), keep=(0, math.inf), cache_size=(0, 1 << 26))

    @property
    def net_settings(self) -> dict[str, Any]:
        """The settings for `make_net`, as a checkpoint's card holds them."""
        return settings_by_name(self.net)


def settings_by_name(net: Any) -> dict[str, Any]:
    """The settings of a net as plain values, from a dataclass or a dict."""
    return dict(net) if isinstance(net, dict) else asdict(net)
