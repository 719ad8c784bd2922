"""Published facts of Othello, with their sources, and FForum's problems as a file of positions."""

import json
from pathlib import Path
from typing import Any

FACTS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
PROBLEMS = FACTS["ffo_endgames"]


def write_problems(folder: Path) -> Path:
    """The problems as Edax and NTest write them, with the published scores."""
    lines = []
    for problem in PROBLEMS.values():
        scores = "".join(f" {move}:{score:+};" for move, score in problem.get("all_moves", {}).items())
        lines.append(f"{problem['board']} {problem['to_move']} {problem['score']};{scores}\n")
    (folder / "problems.obf").write_text("".join(lines))
    return folder / "problems.obf"
