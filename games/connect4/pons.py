"""How good is a policy? Scores any contestant by the exact truth of Connect Four, as Pascal Pons' solver defines it.

    python -m games.connect4.pons runs/connect4-1 --simulations 0,100
    python -m games.connect4.pons minimax:4
    python -m games.connect4.pons runs/connect4-1 --positions FILE --json result.json --plot result.png

- accuracy: the action played keeps the best outcome (win, draw or loss) that the position allows;
- strict accuracy: it also has the best score: the fastest win, the slowest loss;
- cross-entropy: -log of the policy's mass on actions that keep the best outcome, with a mass of at least 0.001;
- value sign accuracy: the value is above 1/3 where the position is won, below -1/3 where it is lost, else between them.

All with 95% intervals. docs/connect4.md says how to read them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.game import registry
from alphazero.matches.intervals import mean_with_interval, share_with_interval
from alphazero.pages import check_picture_file, new_figure, save_figure
from alphazero.players.contestants import open_contestant
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Assessment, Player
from alphazero.progress import Progress, count_cores
from alphazero.storage.files import check_output_file, write_json
from games.connect4.labelled import Labelled, best_scores, decisive, load_file, load_frozen
from games.connect4.solver import NO_SCORE, Solver
from games.connect4.solver_program import confirm

FIGURES = ("accuracy", "strict_accuracy", "cross_entropy", "value_sign_accuracy")
PHASES = {"0-11": (0, 11), "12-23": (12, 23), "24-": (24, 41)}
"""Parts of the game by ply, first to last."""
LEAST_MASS = 1e-3
"""A policy that gives all good actions less than this is not punished further."""
DRAWN = 1 / 3
"""Values up to this from 0 say that the position is a draw."""
POSITIONS_PER_CALL = 512


@dataclass(frozen=True)
class Judgement:
    """What a contestant got right, position by position; None where it has no such opinion."""

    plies: np.ndarray
    """`int64[n]`."""
    right: np.ndarray
    """`bool[n]`: the action keeps the best outcome."""
    strictly_right: np.ndarray
    """`bool[n]`: the action has the best score."""
    losses: np.ndarray | None
    """`float64[n]`: -log of the policy's mass on the actions that keep the best outcome."""
    value_plies: np.ndarray
    """`int64[m]`."""
    values_right: np.ndarray | None
    """`bool[m]`."""

    def figures(self, first_ply: int = 0, last_ply: int = 41) -> dict[str, Any]:
        """The figures over those plies by name, with their intervals `[low, high]`; None where there are none."""
        rows = (first_ply <= self.plies) & (self.plies <= last_ply)
        value_rows = (first_ply <= self.value_plies) & (self.value_plies <= last_ply)
        found = {
            "accuracy": share_with_interval(self.right[rows]),
            "strict_accuracy": share_with_interval(self.strictly_right[rows]),
            "cross_entropy": (None, None) if self.losses is None else mean_with_interval(self.losses[rows]),
            "value_sign_accuracy": (None, None)
            if self.values_right is None
            else share_with_interval(self.values_right[value_rows]),
        }
        figures: dict[str, Any] = {"positions": int(rows.sum())}
        for name, (figure, interval) in found.items():
            figures[name], figures[f"{name}_interval"] = figure, interval
        return figures

    def by_phase(self) -> dict[str, dict[str, Any]]:
        """The figures of each part of the game."""
        return {name: self.figures(*plies) for name, plies in PHASES.items()}

    def by_ply(self) -> dict[int, dict[str, Any]]:
        """The figures of each ply that has positions."""
        return {int(ply): self.figures(ply, ply) for ply in np.unique(self.plies)}


def judge(player: Player, labelled: Labelled, on_progress: Callable[[float], None] | None = None) -> Judgement:
    """Asks `player` about every position; `on_progress` hears the share that is done."""
    num_positions, num_values = len(labelled.states), len(labelled.value_states)
    legal = labelled.column_scores != NO_SCORE
    best = best_scores(labelled.column_scores)[:, None]
    keeps = legal & (np.sign(labelled.column_scores) == np.sign(best))

    def ask(states: np.ndarray, before: int) -> list[Assessment]:
        answers = []
        for start in range(0, len(states), POSITIONS_PER_CALL):
            piece = states[start : start + POSITIONS_PER_CALL]
            games = np.arange(start, start + len(piece))  # each position is a game of its own
            answers.append(player.assess(piece, games, _plies(piece)))
            if on_progress:
                on_progress((before + start + len(piece)) / (num_positions + num_values))
        return answers

    answers = ask(labelled.states, 0)
    actions = np.concatenate([answer.actions for answer in answers])
    policies = [answer.policy for answer in answers if answer.policy is not None]
    losses = values_right = None
    if policies:
        masses = (np.concatenate(policies) * keeps).sum(axis=1, dtype=np.float64)
        losses = -np.log(np.clip(masses, LEAST_MASS, 1.0))
    if answers[0].values is not None and num_values:
        values = np.concatenate([x.values for x in ask(labelled.value_states, num_positions) if x.values is not None])
        said = np.where(np.abs(values) <= DRAWN, 0, np.sign(values))
        values_right = said == np.sign(labelled.value_scores)
    rows = np.arange(num_positions)
    return Judgement(
        _plies(labelled.states), keeps[rows, actions], (labelled.column_scores == best)[rows, actions], losses,
        _plies(labelled.value_states), values_right,
    )  # fmt: skip


def _plies(states: np.ndarray) -> np.ndarray:
    return np.bitwise_count(states).sum(axis=1, dtype=np.int64)


# --- the command ---


@dataclass(frozen=True)
class PonsConfig:
    """Scores a contestant's moves and values by the exact truth of Connect Four.

    A contestant is a checkpoint, a run folder, random, greedy, minimax:DEPTH, mcts:SIMULATIONS or solver.
    """

    contestant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """Whom to score."""
    simulations: str = "0"
    """Simulations per position of a net, one or several as in 0,100,800; 0 = its policy without a search."""
    positions: Path | None = None
    """Score on the positions of this file (lines `moves score`, or JSON lines with moves and scores) instead."""
    solver_command: str | None = None
    """A solver program that must confirm the labels: reads `moves` lines, answers `moves score` (as Pons' does)."""
    json: Path | None = None
    """Write the figures into this file as well."""
    plot: Path | None = None
    """Draw the accuracy by ply into this file (.png, .svg or .pdf)."""
    seed: int = 0
    """Breaks ties between equally good moves."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024 or not 0 <= self.seed < 1 << 63:
            raise InvalidSetting("--threads must lie between 1 and 1,024, and --seed from 0 up")
        for name, path in (("--json", self.json), ("--plot", self.plot)):
            if path is not None:
                check_output_file(name, path)
        if self.plot is not None:
            check_picture_file("--plot", self.plot)


def main(argv: list[str]) -> None:
    config = parse(PonsConfig, argv)
    players = open_players(config)
    labelled = load_file(config.positions, Solver(config.threads)) if config.positions else load_frozen()
    if config.solver_command is not None:
        count = confirm(labelled, config.solver_command)
        print(f"{config.solver_command} confirms the labels ({count:,} answers)")
    judgements = []
    for player in players:
        with Progress(player.name) as progress:

            def show(done: float, progress: Progress = progress) -> None:
                progress.show(done, f"{done:.0%}")

            judgements.append(judge(player, labelled, show))
    if config.json is not None:
        write_json(config.json, [as_json(config.contestant, *pair) for pair in zip(players, judgements, strict=True)])
    if config.plot is not None:
        draw(config.plot, config.contestant, players, judgements)
    source = "the frozen set" if config.positions is None else str(config.positions)
    num_decisive = int(decisive(labelled.column_scores).sum())
    print(f"{config.contestant} on {source}: {len(labelled.states)} positions, {num_decisive} of them decisive")
    for player, judgement in zip(players, judgements, strict=True):
        print(f"\n{describe(_simulations_of(player), judgement)}")


def open_players(config: PonsConfig) -> list[Player]:
    """The contestant with each number of simulations that it takes; only once if it takes none."""
    loaded = registry.load("connect4")
    try:
        numbers = [int(word) for word in config.simulations.split(",")]
    except ValueError:
        raise InvalidSetting(f"--simulations takes whole numbers as in 0,100,800, not {config.simulations!r}") from None
    if not all(0 <= number <= 1_000_000 for number in numbers):
        raise InvalidSetting(f"--simulations must lie between 0 and 1,000,000, not {config.simulations}")
    players: dict[int | None, Player] = {}
    for number in numbers:
        player = open_contestant(
            config.contestant, loaded, seed=config.seed, threads=config.threads, simulations=number
        )
        if player.one_at_a_time:
            raise InputError(f"{config.contestant} plays one game at a time; thousands of positions would be too many")
        players.setdefault(_simulations_of(player), player)
    return list(players.values())


def _simulations_of(player: Player) -> int | None:
    """Simulations per position; None if the player does not search so."""
    if isinstance(player, SearchPlayer):
        return player.num_simulations
    return 0 if isinstance(player, PolicyPlayer) else None


def as_json(contestant: str, player: Player, judgement: Judgement) -> dict[str, Any]:
    """What `--json` writes of one number of simulations."""
    return {
        "contestant": contestant,
        "simulations": _simulations_of(player),
        **judgement.figures(),
        "by_phase": judgement.by_phase(),
        "by_ply": judgement.by_ply(),
    }


def describe(simulations: int | None, judgement: Judgement) -> str:
    """A table by phase, and a picture of the accuracy by ply."""
    title = {None: "", 0: "policy without a search"}.get(simulations, f"{simulations} simulations")
    heads = f"{'accuracy':>20}{'strict accuracy':>20}{'cross-entropy':>23}{'value sign':>20}"
    lines = [f"{title:<24}{'positions':>10}{heads}"]
    rows = {"all": judgement.figures(), **{f"plies {name}": x for name, x in judgement.by_phase().items()}}
    for name, figures in rows.items():
        lines.append(
            f"{name:<24}{figures['positions']:>10}"
            f"{_percent(figures, 'accuracy')}{_percent(figures, 'strict_accuracy')}"
            f"{_number(figures, 'cross_entropy')}{_percent(figures, 'value_sign_accuracy')}"
        )
    lines.append("\naccuracy by ply")
    for first in range(0, 42, 3):
        figures = judgement.figures(first, first + 2)
        if figures["positions"]:
            bar = "█" * round(40 * figures["accuracy"])
            lines.append(f"{first:>5}-{first + 2:<3} {bar:<40} {figures['accuracy']:.1%}")
    return "\n".join(lines)


def _percent(figures: dict[str, Any], name: str) -> str:
    if figures[name] is None:
        return f"{'-':>20}"
    low, high = figures[f"{name}_interval"]
    return f"{f'{figures[name]:.1%} ({100 * low:.1f}-{100 * high:.1f})':>20}"


def _number(figures: dict[str, Any], name: str) -> str:
    if figures[name] is None:
        return f"{'-':>23}"
    low, high = figures[f"{name}_interval"]
    return f"{f'{figures[name]:.3f} ({low:.3f}-{high:.3f})':>23}"


def draw(path: Path, contestant: str, players: Sequence[Player], judgements: Sequence[Judgement]) -> None:
    """Accuracy by ply with its intervals, one line for each number of simulations."""
    figure = new_figure()
    axes = figure.add_subplot()
    for player, judgement in zip(players, judgements, strict=True):
        by_ply = judgement.by_ply()
        low, high = (100 * np.array([x["accuracy_interval"][i] for x in by_ply.values()]) for i in range(2))
        simulations = _simulations_of(player)
        label = {None: contestant, 0: "policy without a search"}.get(simulations, f"{simulations} simulations")
        axes.plot(list(by_ply), [100 * x["accuracy"] for x in by_ply.values()], label=label)
        axes.fill_between(list(by_ply), low, high, alpha=0.2)
    axes.set(title=contestant, xlabel="ply", ylabel="best outcome kept, %")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(run_command(main))
