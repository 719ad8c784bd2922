"""Makes the pictures of the README and the documents: `python -m benchmarks.pictures`.

There is one position of every game, one Connect Four position with the visits and values of a search, and charts of
strength against minutes, drawn from the measurements in docs/data.
"""

from __future__ import annotations

import contextlib
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import alphazero as az
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.pages import new_figure, save_figure
from alphazero.storage.files import atomic_write

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
POSITIONS = {
    "breakthrough": "c2-c3 d5-d4 b2-b3 e5-e4 d2-d3 b5-b4 c3xb4 d4xe3 f2xe3 c5xb4",
    "connect4": "44444 3 2 3 3 5 5 2 2 2",
    "chess": "e2e4 c7c5 g1f3 d7d6 d2d4 c5d4 f3d4 g8f6 b1c3 a7a6 c1g5 e7e6 f2f4 d8b6",
    "gardner": "c2c3 b4c3 b2c3 a4a3 b1a3 b5c3",
    "dobutsu": "b2b3 c4b3 a1b2 b3c2 c1c2 C@b3 b2c3",
    "draughts": "11-16 22-18 10-14 25-22 7-11 30-25 2-7 24-20 7-10 21-17 14x21x30 22-17 30-25",
    "dots_and_boxes": "0 12 13 22 9 11 2 15 8 17 21 3 16",
    "go5": "C3 C2 D2 C4 B4 D3 B2 D4",
    "go6": "C4 D3 C3 D4 D5 E5 D2 C5",
    "go7": "D4 D3 C3 E4 D5 C2 E3 B3 C4 D2",
    "go9": "E5 E3 F3 D3 F2 G4 E2 D4 F4 C6",
    "go13": "D4 K10 K4 D10 F11 C6 F3 L6",
    "go19": "Q16 D4 Q3 D17 R5 F17 C14 O17",
    "gomoku": "e5 f4 e4 e6 d5 f5 f6 d4 g7 c3 h8",
    "gomoku15": "h8 i7 i9 g9 h10 h7 j8 g11 f10 g7 f7 g8 g10 i8",
    "hex": "d4 e3 c5 e4 d5 e2 d2 d3 c3 b5 c4 e5",
    "hex_swap": "b2",
    "nim": "4-3 3-1 2-2",
    "othello": "d3 e3 f4 g5 g4 c5 f3 e2 f5 c4 e6 f6 d6 g6 f7 d7 h4 e7 h5 g3 d8 h3",
    "othello6": "c2 d2 e3 b4 c1 f3 e4 f4 b3 a3 d5 c5",
    "pig": "roll 5 roll 6 hold roll 4",
    "backgammon": "31 8/5 6/5 66",
    "cantstop": "2 6 5 3 5+11 roll 1 6 3 4 7+7 roll 5 6 2 3 7 stop 4 4 2 6 8+8 roll 1 1 4 5 5+6 stop 6 2 1 5",
    "cantstop3": "2 2 2 3 4+5 roll 3 3 5 4 7+8 stop 6 6 2 4 8+10 stop 3 4 6 1 7+7 roll 2 5 3 3 6+7 stop 5 5 4 6",
    "cantstop4": "3 4 3 6 7+9 stop 1 5 6 6 7+11 stop 2 5 2 5 7+7 stop 4 5 2 1 6+6 stop 6 4 6 6 10+12 roll 2 5 6 3",
    "2048": "b3=2 a1=4 down c3=2 left a2=2 down b1=2",
    "tictacmo": "c2 b2 d2 c1 c3 a1",
    "tictactoe": "b2 a1 c1 a3 a2 c2",
}
"""The moves that lead to each position."""
STRENGTHS = {
    "backgammon_points": (
        "Backgammon: points a game with 100 simulations", "points a game", (-1.7, 0.3), 0, "GNU Backgammon at 0 plies",
    ),
    "go7_score": ("Go on 7x7: score against GNU Go 3.8, level 10", "score, %", (0, 105), 50, "GNU Go"),
    "go9_score": ("Go on 9x9: score against GNU Go 3.8, level 10", "score, %", (0, 105), 50, "GNU Go"),
}  # fmt: skip
"""Charts of strength: title, unit, limits, where both are as strong, and the opponent."""


@dataclass(frozen=True)
class PicturesConfig:
    """Makes the pictures of the README and the documents."""

    folder: Path = ROOT / "docs" / "pictures"
    """The folder to write them to."""


def main(argv: list[str]) -> None:
    config = parse(PicturesConfig, argv)
    if not config.folder.parent.is_dir():
        raise InvalidSetting(f"--folder takes a folder, or a new one in a folder, not {str(config.folder)!r:.200}")
    config.folder.mkdir(exist_ok=True)
    for name, svg in boards().items():
        atomic_write(config.folder / f"{name}.svg", svg.encode())
    draw_accuracy(config.folder / "connect4_accuracy.svg")
    for name in STRENGTHS:
        draw_strength(config.folder / f"{name}.svg")
    print(f"{config.folder} holds {len(POSITIONS) + 1 + len(STRENGTHS)} pictures.")


def boards() -> dict[str, str]:
    """A position of every game, by its name."""
    return {name: az.load_game(name).position(moves).svg() for name, moves in POSITIONS.items()}


def draw_accuracy(path: Path) -> None:
    """The accuracy of the network against minutes of training, one line for each run."""
    curves: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in read("connect4_accuracy.csv"):
        curves[row["run"]].append((float(row["seconds"]) / 60, 100 * float(row["accuracy"])))
    with chart(path) as axes:
        for (run, points), color, marker in zip(curves.items(), COLORS, "osD^", strict=True):
            axes.plot(*zip(*points, strict=True), color=color, marker=marker, label=run)
            minutes, accuracy = points[-1]
            place = (0, -18) if run in ("quick, AVX2", "standard, AVX2") else (0, 8)  # other lines are above these
            axes.annotate(f"{accuracy:.1f}%", (minutes, accuracy), place, textcoords="offset points", ha="center")
        axes.set(
            title="Connect Four: right moves of the network alone, without a search",
            xlabel="minutes of training on two cores", ylabel="accuracy, %", xlim=(0, 42), ylim=(78, 97),
        )  # fmt: skip
        axes.legend(loc="lower right", frameon=False)


def draw_strength(path: Path) -> None:
    """The strength of nets with its 95% intervals against minutes of training; the file's name says of which game."""
    title, unit, limits, equal, opponent = STRENGTHS[path.stem]
    lines: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for row in read(f"{path.stem}.csv"):
        lines[row["line"]].append(tuple(float(row[name]) for name in ("minutes", "value", "low", "high")))
    with chart(path) as axes:
        for (line, rows), color in zip(lines.items(), (COLORS[0], *COLORS[2:]), strict=False):
            minutes, value, low, high = np.array(rows).T
            error = value - low, high - value
            axes.errorbar(minutes, value, error, color=color, marker="o", elinewidth=1, capsize=4, label=line)
        axes.axhline(equal, color=COLORS[1])
        place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(f"as strong as {opponent}", (1, equal), (-8, -16), ha="right", color=COLORS[1], **place)
        axes.set(title=title, xlabel="minutes of training on one core", ylabel=unit, ylim=limits)
        axes.legend(loc="lower right", frameon=False)


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table in docs/data."""
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@contextlib.contextmanager
def chart(path: Path) -> Iterator[Any]:
    """Gives the axes of a chart, and writes it afterwards."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        figure = new_figure(8, 4)
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
        yield axes
        save_figure(figure, path)


PANEL, TEXT = "#34435a", "#e8edf4"
COLORS = "#f5a623", "#4cc9f0", "#ff8fa3", "#9be564"
LOOK: dict[Any, object] = {
    "axes.edgecolor": TEXT, "axes.facecolor": PANEL, "axes.labelcolor": TEXT, "axes.titlecolor": TEXT,
    "figure.constrained_layout.h_pad": 0.15, "figure.constrained_layout.w_pad": 0.15, "figure.facecolor": PANEL,
    "font.family": "sans-serif", "font.size": 12, "grid.color": TEXT, "legend.labelcolor": TEXT, "lines.linewidth": 2.5,
    "savefig.facecolor": PANEL, "svg.fonttype": "none", "text.color": TEXT, "xtick.color": TEXT, "ytick.color": TEXT,
}  # fmt: skip
"""Charts have the colours of the boards, so they suit light and dark pages."""


if __name__ == "__main__":
    sys.exit(run_command(main))
