"""The settings of self-play."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Each game begins with random plies: 0 to this many, all equally likely. They give no samples."""
    epsilon: float = 0.0
    """Each game draws its own share of random plies, between 0 and this, to show the network what mistakes cost.
    Value targets do not look past such a ply (Watkins 1989)."""
    epsilon_after: int = 0
    """Games of the run before `epsilon` takes effect; by then the search's values should be good."""
    td_lambda: float = 0.9
    """Lambda of the value target, the lambda-return (Sutton 1988) of the search's values and the game's result.
    With 1 it is the result alone, with 0 the search's value of the position alone."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "self_play.",
            games_per_generation=(1, 1 << 24), num_slots=(1, 1 << 16), temperature=(0, 100),
            temperature_plies=(0, 1 << 16), final_temperature=(0, 100), random_plies=(0, 1 << 16), epsilon=(0, 1),
            epsilon_after=(0, 1 << 48), td_lambda=(0, 1),
        )  # fmt: skip
