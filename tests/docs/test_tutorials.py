"""The tutorials run from their first cell to their last, in an empty folder."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
TINY = (
    'generations=1, net={"blocks": 1, "channels": 8}, search={"num_simulations": 8}, evaluation={"opponents": ()}, '
    'self_play={"games_per_generation": 16, "num_slots": 8}, gate={"games": 4}'
)
SMALLER = {
    "minutes=3": TINY,
    "minutes=2": TINY,
    "games=100": "games=4",
    "games=20": "games=4",
    "mcts:100": "mcts:8",
    "simulations=400": "simulations=16",
}
"""What takes long, made short."""
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_there_are_three():
    assert [path.stem for path in TUTORIALS] == ["first_net", "research", "your_own_game"]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem == "first_net" else pytest.mark.slow) for path in TUTORIALS],
    ids=lambda path: path.stem,
)
def test_a_tutorial_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for large, small in SMALLER.items():
            cell.source = cell.source.replace(large, small)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert last.outputs, "the last cell shows a result"
    assert os.listdir(tmp_path), "a tutorial trains, so its run is here"
