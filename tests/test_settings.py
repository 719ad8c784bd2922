"""Range checks of settings: one sentence that names the setting, its limits and its value."""

from __future__ import annotations

import ast
import itertools
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pytest

from alphazero.errors import InvalidSetting
from alphazero.interruption import State
from alphazero.invocation import option
from alphazero.search.mcts import SearchConfig
from alphazero.settings import check_ranges, config_from_dict
from alphazero.training.config import RunConfig

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Settings:
    random_plies: int = 3
    rate: float | None = 0.5
    counts: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    ("settings", "what", "sentence"),
    [
        (Settings(random_plies=-1), "", "random_plies must lie between 0 and 65,536, not -1"),
        (Settings(random_plies=-1), "search setting", "search setting random_plies must lie between 0 and 65,536"),
        (Settings(rate=1e-9), "learner.", "^learner.rate must be 1e-08 or more, not 1e-09"),
        (Settings(rate=math.nan), "", "rate must be 1e-08 or more, not nan"),
        (Settings(counts=(1, 0)), "", "counts must be 1 or more, not 0"),
        (Settings(random_plies=2.5), "", "random_plies must be a whole number, not 2.5"),
        (Settings(counts=(1, 2.5)), "", "counts must be a whole number, not 2.5"),
        (Settings(random_plies="3"), "", "random_plies must lie between 0 and 65,536, not '3'"),
        (Settings(rate="x" * 500), "", "rate must be 1e-08 or more, not 'xxx.*\\.\\.\\..*xxx'$"),
    ],
)
def test_a_value_outside_its_limits_is_refused(settings, what, sentence):
    with pytest.raises(InvalidSetting, match=sentence):
        check_ranges(settings, what, random_plies=(0, 1 << 16), rate=(1e-8, math.inf), counts=(1, math.inf))


@pytest.mark.parametrize("settings", [Settings(), Settings(0, None, ()), Settings(1 << 16, 1e-8, (1,))])
def test_both_limits_are_allowed_and_none_is_no_value(settings):
    check_ranges(settings, random_plies=(0, 1 << 16), rate=(1e-8, math.inf), counts=(1, math.inf))


def test_numbers_of_numpy_are_taken_as_pythons():
    like = RunConfig()
    given = {
        "generations": np.int64(3), "minutes": np.float32(0.5), "net": {"blocks": np.uint8(2)},
        "gate": {"enabled": np.bool_(False), "games": np.int16(8)}, "learner": {"learning_rate": np.float64(0.001)},
    }  # fmt: skip
    config = config_from_dict(RunConfig, given, "here", like)
    plain = {name: getattr(config, name) for name in ("generations", "minutes")}
    plain |= {"blocks": config.net.blocks, "enabled": config.gate.enabled, "rate": config.learner.learning_rate}
    assert plain == {"generations": 3, "minutes": 0.5, "blocks": 2, "enabled": False, "rate": 0.001}
    assert {type(value) for value in plain.values()} == {int, float, bool}
    own = config_from_dict(RunConfig, {"net": {"sizes": [np.int64(3)], "scale": np.float32(0.5)}}, "here", like).net
    assert repr(own) == "{'sizes': [3], 'scale': 0.5}"
    with pytest.raises(InvalidSetting, match="here, learner: learning_rate must be a number, not "):
        config_from_dict(RunConfig, {"learner": {"learning_rate": np.bool_(True)}}, "here", like)


def test_a_retired_setting_that_did_nothing_is_dropped_at_any_depth():
    old = asdict(SearchConfig(num_simulations=9)) | {"root_temperature": 1.0}
    assert config_from_dict(SearchConfig, old, "a card") == SearchConfig(num_simulations=9)
    run = asdict(RunConfig())
    run["search"]["root_temperature"] = 1
    assert config_from_dict(RunConfig, run, "config.json") == RunConfig()


def test_a_retired_setting_that_did_something_is_refused():
    with pytest.raises(InvalidSetting, match="unknown name .root_temperature"):
        config_from_dict(SearchConfig, {"root_temperature": 1.2}, "a card")


def test_settings_are_named_as_the_user_gives_them(monkeypatch):
    def named() -> list[str]:
        return [option("self_play.num_slots"), option("device", "cpu"), option("threads", 2), option("resume", True)]

    assert named() == ["self_play.num_slots", "device='cpu'", "threads=2", "resume=True"]
    monkeypatch.setattr(State, "command_runs", True)
    assert named() == ["--self-play.num-slots", "--device cpu", "--threads 2", "--resume"]
    with pytest.raises(InvalidSetting, match="^--random-plies must lie between 0 and 9, not 10"):
        check_ranges(Settings(random_plies=10), random_plies=(0, 9))


def test_help_texts_end_their_lines_with_their_sentences():
    """The command line shows the lines of a help text as they are: an end within a sentence would tear it apart."""
    torn = []
    modules = (ROOT / "alphazero").rglob("*.py")
    for part in itertools.chain.from_iterable(ast.walk(ast.parse(module.read_text())) for module in modules):
        if not isinstance(part, ast.ClassDef) or not part.name.endswith(("Config", "Options")):
            continue
        for field, text in itertools.pairwise(part.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                lines = str(text.value.value).split("\n")
                torn += [line for line in lines[:-1] if line.strip() and not line.endswith((".", ";", ":"))]
    assert torn == []


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"prove": "no"}, "search setting prove must be True or False, not 'no'"),
        ({"prove": 1}, "search setting prove must be True or False, not 1"),
        ({"num_simulations": True}, "search setting num_simulations must lie between 1 and 1,000,000, not True"),
    ],
)
def test_truths_and_numbers_are_not_mistaken_for_each_other(setting, sentence):
    with pytest.raises(InvalidSetting) as raised:
        SearchConfig(**setting)
    assert str(raised.value).startswith(sentence)
    assert SearchConfig(prove=np.bool_(False)).prove == False  # noqa: E712 (a bool of numpy)
