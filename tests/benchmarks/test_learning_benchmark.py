"""`python -m benchmarks.learning`: what it reads off a run, and a whole small one."""

import json

import pytest

from alphazero.commands.shared import run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.nets.devices import INFERENCE_VARIABLE
from benchmarks.learning import Curve, LearningBenchmark, describe, flags_of, main, median_of, name_of

LINE = {
    "generation": 1, "cpu_seconds": 10.0, "games": 500, "simulations_per_s": 1000, "self_play_seconds": 8.0,
    "pons_accuracy": 0.5,
}  # fmt: skip


def curve(figures, seed=0, variant=None):
    made = Curve(variant or {}, seed)
    for i, figure in enumerate(figures):
        made.add(LINE | {"generation": i + 1, "pons_accuracy": figure}, 12.5 * (i + 1), "pons_accuracy")
    return made


def test_a_curve_adds_up_what_its_generations_took():
    made = curve([0.5, 0.7, 0.9])
    assert made.cpu_seconds == [10.0, 20.0, 30.0]
    assert made.games == [500, 1000, 1500] and made.simulations == [8000, 16000, 24000]
    assert made.reached(0.7) == 1 and made.reached(0.71) == 2 and made.reached(0.95) is None


def test_a_figure_that_the_runs_do_not_have_is_refused():
    with pytest.raises(InputError, match=r"no figure 'x'; choose one of .*pons_accuracy"):
        Curve({}, 0).add(LINE, 1.0, "x")


def test_the_table_gives_medians_and_who_got_there():
    variants = [{}]
    table = describe([curve([0.6, 0.9]), curve([0.9], 1), curve([0.5, 0.6, 0.91], 2)], variants, [0.85, 0.95])
    reached, missed = table.splitlines()[1:]
    assert reached.split() == ["as", "it", "is", "0.850", "3/3", "25", "38", "20", "1,000", "16,000", "0.900"]
    assert missed.split() == ["as", "it", "is", "0.950", "0/3", "-", "-", "-", "-", "-", "0.900"]


def test_flags_are_varied_in_every_combination():
    config = LearningBenchmark(vary="search.num-simulations=16,32;gate.enabled=on,off")
    variants = list(config.variants())
    assert len(variants) == 4
    assert flags_of(variants[1]) == ["--search.num-simulations", "16", "--gate.no-enabled"]
    assert flags_of(variants[2]) == ["--search.num-simulations", "32", "--gate.enabled"]
    assert flags_of({"resume": "off"}) == ["--no-resume"]
    assert flags_of({"gumbel": "off", "gate": "on"}) == ["--search.gumbel-actions", "0", "--gate.enabled"]
    assert flags_of({"gumbel": "on", "gate": "off"}) == ["--search.gumbel-actions", "16", "--gate.no-enabled"]
    assert name_of(variants[3]) == "search.num-simulations=32 gate.enabled=off" and name_of({}) == "as it is"


@pytest.mark.parametrize(
    "settings",
    [{"seeds": 0}, {"minutes": 0}, {"until": "high"}, {"until": ""}, {"vary": "gate"}, {"vary": "gumbel=7"}],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidSetting):
        LearningBenchmark(**settings)


@pytest.mark.parametrize("gates", ["on", pytest.param("on,off", marks=pytest.mark.slow)])
def test_a_whole_small_benchmark(gates, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(INFERENCE_VARIABLE, "torch")  # the other libraries take seconds to begin
    flags = (
        "--generations 1 --net.blocks 1 --net.channels 8 --search.num-simulations 2 --gate.games 2 --threads 1 "
        "--self-play.games-per-generation 8 --evaluation.opponents random --evaluation.games 2 "
        "--evaluation.simulations 2"
    )
    file, plot, variants = tmp_path / "curves.json", tmp_path / "curves.svg", gates.split(",")
    command = ["--until", "0.01,0.999", "--seeds", "1", "--minutes", "60", "--vary", f"gate.enabled={gates}"]
    assert run_command(main, [*command, f"--flags={flags}", "--json", str(file), "--plot", str(plot)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 1 + 2 * len(variants)
    assert table[1].startswith("gate.enabled=on") and " 1/1 " in table[1] and " 0/1 " in table[2]
    written = json.loads(file.read_text())
    for name in ("seconds_until", "cpu_seconds_until", "games_until", "simulations_until"):
        assert written[name] == written["variants"][0][name] and set(written[name]) == {"0.01", "0.999"}
        assert written[name]["0.999"] == {"median": None, "values": [None]}
        assert written[name]["0.01"]["median"] == written[name]["0.01"]["values"][0] > 0
    for made in (written["variants"], written["curves"]):
        assert [each["variant"] for each in made] == [{"gate.enabled": gate} for gate in variants]
    for made in written["curves"]:
        assert made["generations"] == [1] and made["seconds"] == sorted(made["seconds"])
        assert all(0 < figure < 1 for figure in made["figures"])
    assert plot.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("values", "median"),
    [([3, 1, 2], 2), ([1, None, 5], 5), ([None, None, 5], None), ([4, 2], 3), ([4, None], None), ([], None)],
)
def test_a_run_that_does_not_get_there_counts_as_the_slowest(values, median):
    assert median_of(values) == median
