"""The whole loop with tiny numbers: what it leaves behind, the gate, and resuming bit for bit."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting, RunFolderError, Stopped
from alphazero.matches import arena
from alphazero.nets.resnet import NetConfig
from alphazero.players.baselines import RandomPlayer
from alphazero.players.contestants import open_opponents
from alphazero.search.mcts import SearchConfig
from alphazero.settings import config_from_dict
from alphazero.storage.checkpoint import load_checkpoint, read_card
from alphazero.storage.files import read_json_less_seal
from alphazero.storage.formats import EVALUATION_SEAL
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_folder import RunFolder
from alphazero.training import coach as coach_module
from alphazero.training.coach import Coach
from alphazero.training.config import (
    EvaluationConfig,
    GateConfig,
    LearnerConfig,
    ReplayConfig,
    RunConfig,
    SelfPlayConfig,
)
from alphazero.training.parts import gate as gate_module
from alphazero.training.parts import pace as pace_module
from alphazero.training.parts.gate import benchmark_figures, play_against
from alphazero.training.parts.journal import Journal
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace, seconds_left
from alphazero.training.plan import RunPlan

TINY = RunConfig(
    generations=4,  # in the last one the learning rate falls
    cache_size=1 << 10,
    net=NetConfig(blocks=1, channels=8, head_channels=4, value_hidden=8),
    search=SearchConfig(num_simulations=6),
    self_play=SelfPlayConfig(games_per_generation=12, num_slots=6, temperature_plies=3),
    replay=ReplayConfig(window_start=2, window_growth=0.0),
    learner=LearnerConfig(batch_size=16, sample_reuse=2),
    gate=GateConfig(games=6, simulations=2),
    evaluation=EvaluationConfig(games=4, simulations=2),
)
FLAGS = [
    "--generations", "3", "--cache-size", "1024", "--net.blocks", "1", "--net.channels", "8",
    "--search.num-simulations", "6", "--self-play.games-per-generation", "12", "--self-play.num-slots", "6",
    "--learner.batch-size", "16", "--gate.games", "6", "--gate.simulations", "2", "--evaluation.games", "4",
    "--evaluation.opponents", "random", "--threads", "2", "--deterministic",
]  # fmt: skip


def make_coach(folder: RunFolder, config: RunConfig = TINY, loaded: LoadedGame | None = None, seed: int = 0) -> Coach:
    torch.manual_seed(seed)
    plan = RunPlan(loaded or registry.load("tictactoe"), config, ["cpu"], threads=2, seed=seed, deterministic=False)
    coach = Coach(plan, folder)
    coach.prepare()
    return coach


def run_all(path: Path, config: RunConfig = TINY, loaded: LoadedGame | None = None) -> Coach:
    with RunFolder.create(path, {"settings": asdict(config)}) as folder:
        coach = make_coach(folder, config, loaded)
        coach.run()
        return coach


def checksums(path: Path) -> dict[str, str]:
    """Everything in a run folder that must not depend on interruptions."""
    names = [
        file
        for file in sorted(path.iterdir())
        if file.suffix in (".safetensors", ".npz") or (file.name.startswith("generation_") and file.suffix == ".json")
    ]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in names}


def figures(path: Path) -> list[dict]:
    """The lines of metrics.jsonl without those that tell the time."""
    lines = read_metrics(path)
    timed = ("seconds", "_per_s", "network_share")
    return [{name: x for name, x in line.items() if not any(part in name for part in timed)} for line in lines]


def test_what_stops_a_run_that_gets_ready_ends_its_workers(tmp_path, monkeypatch):
    """In a notebook nobody else would."""
    ended = []
    loaded = replace(registry.load("tictactoe"), make_benchmark=lambda game: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.setattr(Lineup, "close", lambda lineup: ended.append(lineup))
    with RunFolder.create(tmp_path / "run", {"settings": asdict(TINY)}) as folder, pytest.raises(KeyboardInterrupt):
        make_coach(folder, TINY, loaded)
    assert ended


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "undisturbed"
    run_all(path)
    return path


def test_a_whole_run_leaves_everything_behind(undisturbed):
    lines = [json.loads(line) for line in (undisturbed / "metrics.jsonl").read_text().splitlines()]
    assert [line["generation"] for line in lines] == [1, 2, 3, 4]
    needed = {"seconds", "games", "positions", "policy_loss", "value_loss", "gate_score", "promoted"}
    assert all(needed <= line.keys() and line["games"] >= 12 and line["positions"] >= 5 * 12 for line in lines)
    assert [line["learning_rate"] for line in lines] == pytest.approx([3e-3, 3e-3, 3e-3, 3e-3 - 2.8e-3 / 6])
    for generation in range(5):
        tensors, card = load_checkpoint(undisturbed / f"generation_{generation:04d}.safetensors")
        assert card["game"] == "tictactoe" and card["generation"] == generation and tensors
        assert card["net"] == asdict(TINY.net) and card["parameters"] > 100 and card["flops_per_position"] > 1000
    first, last = (load_checkpoint(undisturbed / f"generation_{n:04d}.safetensors")[0] for n in (0, 4))
    assert any(not np.array_equal(first[name], last[name]) for name in first)


def test_samples_are_reused_as_often_where_a_batch_would_hold_more_than_the_window(tmp_path):
    """The window has some tens of positions: each update draws all of them, once.

    With many more games at once than a generation has, most positions are of games that go on.
    """
    learner, games = LearnerConfig(batch_size=1024, sample_reuse=3), replace(TINY.self_play, num_slots=64)
    config = replace(TINY, generations=1, learner=learner, gate=GateConfig(enabled=False), self_play=games)
    run_all(tmp_path / "run", config)
    (line,) = figures(tmp_path / "run")
    assert line["window_positions"] < 1024 and line["draws_per_position"] == line["updates"] > 1
    assert 3 <= line["sample_reuse"] < 3 + line["window_positions"] / line["positions"] + 1e-3
    assert 5 <= line["plies_per_game"] <= 9
    assert line["plies_per_game"] * line["games"] == pytest.approx(line["positions"], abs=0.5)


def test_the_window_lets_old_replay_files_go(undisturbed):
    """A window of two generations, and two points to resume from: after the fourth the first file has left."""
    assert [file.name for file in sorted(undisturbed.glob("replay_*"))] == [f"replay_000{n}.npz" for n in (2, 3, 4)]
    assert latest_manifest(undisturbed).state["replay"] == [3, 4]


def test_arrived_games_whose_file_cannot_be_removed_stay_taken_where_this_machine_plays_on(tmp_path):
    """Else a resume on a cluster would count them again."""
    with RunFolder.create(tmp_path / "run", {}) as folder:
        coach = make_coach(folder, replace(TINY, generations=1, gate=GateConfig(enabled=False)))
        (folder.path / "arrived_000000007.npz").mkdir()
        coach.lineup.arrivals.taken = [7]
        coach.run()
    assert latest_manifest(tmp_path / "run").state["arrived"] == [7]


def test_another_number_of_slots_is_refused_on_resume_before_anything_is_changed(undisturbed, tmp_path):
    path = shutil.copytree(undisturbed, tmp_path / "run")
    config = replace(TINY, self_play=replace(TINY.self_play, num_slots=2))
    with RunFolder.open(path) as folder:
        folder.append_metrics({"generation": 5})  # of a generation whose manifest was not written any more
        before = (path / "metrics.jsonl").read_bytes()
        with pytest.raises(RunFolderError, match="num_slots"):
            make_coach(folder, config).run()
    assert (path / "metrics.jsonl").read_bytes() == before


def test_a_run_goes_on_without_an_older_replay_file_that_is_damaged(undisturbed, tmp_path, caplog):
    path = shutil.copytree(undisturbed, tmp_path / "run")
    (path / "replay_0003.npz").write_bytes(b"damaged")
    with RunFolder.open(path) as folder:
        coach = make_coach(folder, replace(TINY, generations=5))
        assert [number for number, _ in coach.window.generations] == [4]
        assert "replay_0003.npz" in caplog.text and "without these positions" in caplog.text
        coach.run()
        assert folder.newest_valid().state["replay"] == [4, 5]


def run_in_two_parts(path: Path, stop_after: int, monkeypatch, config: RunConfig = TINY) -> None:
    """Interrupted when so many generations are finished, and resumed."""
    begin = Journal.begin

    def interrupted(self, number):
        if number == stop_after + 1:
            raise KeyboardInterrupt
        return begin(self, number)

    monkeypatch.setattr(Journal, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all(path, config)
    monkeypatch.setattr(Journal, "begin", begin)
    with RunFolder.open(path) as folder:
        make_coach(folder, config).run()


@pytest.mark.parametrize("stop_after", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 3))])
def test_a_resumed_run_equals_the_uninterrupted_one(undisturbed, tmp_path, monkeypatch, stop_after):
    path = tmp_path / "run"
    run_in_two_parts(path, stop_after, monkeypatch)
    assert checksums(path) == checksums(undisturbed)
    assert figures(path) == figures(undisturbed)


def gate_that_passes(generation: int):
    """In place of `judge`."""
    return lambda run, now: now.figures.update(gate_score=0.5, promoted=now.number == generation, gate_games=6)


@pytest.fixture(scope="module")
def growing(undisturbed) -> RunConfig:
    return replace(TINY, generations=3, initial_net=f"{undisturbed}:3", net=replace(TINY.net, channels=6))


@pytest.fixture(scope="module")
def grown(growing, tmp_path_factory) -> Coach:
    """A run whose candidate of the second generation takes over."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(coach_module, "judge", gate_that_passes(2))
        return run_all(tmp_path_factory.mktemp("runs") / "grown", growing)


def test_a_network_of_other_sizes_learns_from_the_games_of_another_until_it_passes_the_gate(
    growing, grown, tmp_path, monkeypatch
):
    """Until then the games are those of a run that goes on with the other network, whose candidates do not pass."""
    folder = grown.folder.path
    monkeypatch.setattr(coach_module, "judge", gate_that_passes(0))
    run_all(tmp_path / "same", replace(growing, net=TINY.net, generations=2))
    for name in ("generation_0000.safetensors", "replay_0002.npz"):
        assert checksums(folder)[name] == checksums(tmp_path / "same")[name], name
    cards = [read_card(folder / f"generation_{n:04d}.safetensors") for n in range(4)]
    assert [card["net"]["channels"] for card in cards] == [8, 6, 6, 6]
    assert cards[0]["learned_from_games_of"]["net"] == growing.initial_net and "started_from" not in cards[0]
    assert grown.lineup.best_generation == 2 and grown.lineup.best.card["net"]["channels"] == 6
    since = [line.get("generations_since_promotion") for line in figures(folder)]
    assert since == [None, 0, 1]  # no advice about the gate while the fresh network is far behind


@pytest.mark.parametrize("stop_after", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_resumed_run_outgrows_its_first_net_as_the_uninterrupted_one(
    growing, grown, tmp_path, monkeypatch, stop_after
):
    monkeypatch.setattr(coach_module, "judge", gate_that_passes(2))
    run_in_two_parts(tmp_path / "resumed", stop_after, monkeypatch, growing)
    assert checksums(tmp_path / "resumed") == checksums(grown.folder.path)


def test_a_run_that_grows_needs_its_gate(growing, tmp_path):
    ungated = replace(growing, gate=GateConfig(enabled=False))
    with RunFolder.create(tmp_path / "run", {}) as folder, pytest.raises(InvalidSetting, match="gate"):
        make_coach(folder, ungated)


def judged(coach: Coach, number: int) -> dict:
    """The gate's figures of a generation of so many games of seven plies."""
    coach.pace.generation = number - 1
    generation = coach.journal.begin(number)
    generation.figures |= {"plies_per_game": 7.0, "simulations_per_s": 1000}
    coach_module.judge(coach, generation)
    return generation.figures


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Iterator[Coach]:
    """A run that is ready to begin; each test sets its `plan`, `pace` and `journal.lines` as it needs them."""
    with RunFolder.create(tmp_path_factory.mktemp("prepared") / "run", {}) as folder:
        yield make_coach(folder, replace(TINY, generations=3))


@pytest.mark.parametrize(
    ("scores", "promoted"),
    [
        ([0.6, 0.54, 0.51], [True, False, True]),  # a candidate needs 55%, and the last one more than half
        ([0.54, 0.55, 0.5], [False, True, False]),  # of equals the one that plays stays
    ],
)
def test_a_run_ends_with_the_stronger_net(prepared, scores, promoted, monkeypatch):
    asked = []

    def planted(kernels, first, second, num_games, *arguments):
        asked.append(num_games)
        result = SimpleNamespace(
            score=scores[len(asked) - 1], num_games=num_games, distinct_games=num_games, decides=lambda *_: True
        )
        return [(result, 1.0)]

    monkeypatch.setattr(gate_module, "play_in_time", planted)
    monkeypatch.setattr(pace_module, "LAST_GATE_GAMES", 400)
    assert [judged(prepared, number)["promoted"] for number in (1, 2, 3)] == promoted
    assert asked == [6, 6, 400]  # six games cannot tell so little apart


def test_the_last_gate_takes_no_more_of_the_minutes_than_any_other(monkeypatch):
    """At 400 simulations/s a game of 5 plies and 4 simulations takes 0.05 s, and a twentieth of 2 minutes is 6 s."""
    monkeypatch.setattr(pace_module, "LAST_GATE_GAMES", 400)
    pace = Pace(replace(TINY, minutes=2.0, gate=GateConfig(games=6, simulations=4)))
    assert [pace.gate_games(5 * 4 / 400, last) for last in (False, True)] == [6, 120]


def test_a_run_says_when_its_minutes_are_too_few_to_learn_the_game():
    """2 minutes, 10 evaluations/s and 4 simulations: 300 positions, and tic-tac-toe has 9 actions."""
    game, searched = registry.load("tictactoe").game, replace(TINY.search, num_simulations=4)
    pace = Pace(replace(TINY, minutes=2.0, search=searched))
    sentence = pace.prospect(game, 10.0)
    assert all(number in sentence for number in ("2 minutes", "300", "33 for each", "9 actions"))
    assert pace.prospect(game, 299.0) and not pace.prospect(game, 301.0)
    assert not pace.prospect(game, 0.0)  # a cluster does not know its rate
    assert not Pace(replace(TINY, search=searched)).prospect(game, 10.0)


@pytest.mark.parametrize(
    ("generation", "minutes", "before", "last"),
    [
        (3, 0.0, 1e6, False), (4, 0.0, 0.0, True),  # four generations
        (2, 2.0, 104.9, False), (2, 2.0, 105.0, True),  # 105 s, these 10 s, and 5 s for the gate and what follows
    ],
)  # fmt: skip
def test_the_last_generation_is_known_before_its_gate(generation, minutes, before, last):
    pace = Pace(replace(TINY, minutes=minutes))
    pace.generation, pace.seconds = generation - 1, before
    assert pace.is_last(10.0) == last
    pace.newest_seconds = 2 * 60.0  # this one will take no less
    assert pace.is_last(10.0) == (last or minutes > 0)


def test_a_run_whose_limits_are_used_up_says_so(undisturbed, tmp_path, caplog):
    path = shutil.copytree(undisturbed, tmp_path / "run")
    with caplog.at_level("INFO"), RunFolder.open(path) as folder:
        make_coach(folder, replace(TINY, generations=1)).run()
    assert "count from the beginning of the run" in caplog.text


@pytest.mark.parametrize(
    ("gate", "score", "promoted"),
    [(GateConfig(enabled=False), None, True), (GateConfig(threshold=0.0), None, True), (GateConfig(), 0.0, False)],
    ids=["off", "open", "lost"],
)
def test_a_candidate_below_the_threshold_does_not_take_over(prepared, monkeypatch, gate, score, promoted):
    """Nobody scores above 1: a gate is made unreachable by losing every game."""
    if score is not None:
        monkeypatch.setattr("alphazero.matches.result.MatchResult.score", property(lambda self: score))
    config = replace(prepared.plan.config, gate=replace(gate, games=6, simulations=2))
    monkeypatch.setattr(prepared, "plan", replace(prepared.plan, config=config))
    assert judged(prepared, 1)["promoted"] == promoted


def test_the_net_that_plays_is_the_last_one_promoted(undisturbed):
    promoted = [line["generation"] for line in figures(undisturbed) if line["promoted"]]
    assert latest_manifest(undisturbed).state["best"] == max(promoted, default=0)


def test_a_benchmark_gives_finite_numbers(caplog):
    def benchmark(player):
        return {"wins": np.float32(0.5), "depth": 3, "lost": math.nan, "far": math.inf}

    scored = benchmark_figures(benchmark, None)
    assert scored == {"wins": 0.5, "depth": 3.0} and all(type(figure) is float for figure in scored.values())
    assert "no finite numbers for far, lost" in caplog.text


def test_the_time_left_follows_the_generations_so_far_and_the_minutes():
    for minutes, left in ((0.0, 180), (3.0, 60)):  # 6 more of 30 seconds each; three minutes less two
        assert seconds_left(10, minutes, 4, 120.0) == left


def test_a_benchmark_joins_the_metrics_and_evaluation_plays_the_best_net(tmp_path, caplog):
    path, loaded = tmp_path / "run", registry.load("tictactoe")
    scored = replace(loaded, make_benchmark=lambda game: lambda player: {"planted": float(player.name == "best")})
    with caplog.at_level("INFO"), RunFolder.create(path, {}) as folder:
        coach = make_coach(folder, replace(TINY, generations=1), scored)
        coach.run()
        (opponent,) = open_opponents(["random"], "--opponents", loaded, seed=0, threads=1)
        evaluation = coach.evaluate([opponent])
    assert figures(path)[0]["planted"] == 0 and "planted 0.000; 0:00:00 left" in caplog.text
    (match,) = evaluation["matches"]
    assert evaluation["benchmark"] == {"planted": 1.0}
    assert match["opponent"] == "random" and match["wins"] + match["draws"] + match["losses"] == 4
    low, high = match["score_interval"]
    assert 0 <= low <= match["score"] <= high <= 1
    assert read_json_less_seal(path / "evaluation.json", EVALUATION_SEAL) == evaluation


def test_matches_are_over_in_their_time(prepared, monkeypatch):
    """By hand: games with plies of 1/2000 s and 600 plies take 6 s if they are 20. After three plies 3.07 s are left of
    3.1 s, and 0.8 * 3.07 / 6 of 20 games are 8. Of 256 games, a ply of which takes a second, 10 fit into half a second.
    """
    now = ply_seconds = 0.0
    select = RandomPlayer.select_actions

    def play_slowly(player, states, *arguments):
        nonlocal now
        now += ply_seconds * len(states)
        return select(player, states, *arguments)

    monkeypatch.setattr(RandomPlayer, "select_actions", play_slowly)
    monkeypatch.setattr(arena, "time", SimpleNamespace(monotonic=lambda: now, perf_counter=lambda: now))
    coach = prepared
    players = RandomPlayer(coach.lineup.kernels, 1), RandomPlayer(coach.lineup.kernels, 2)
    monkeypatch.setattr(gate_module, "net_player", lambda *_: players[0])
    for ply_seconds, plies, limit, num_games, least, most in (
        (1 / 256, 9.0, 8.0, 300, 100, 298),
        (1 / 2000, 600.0, 7.0, 20, 20, 20),
        (1 / 2000, 600.0, 3.1, 20, 8, 8),
        (1 / 256, 9.0, 3.5, 600, 10, 10),
        (60.0, 9.0, 15.0, 20, 0, 0),
    ):
        monkeypatch.setattr(coach.journal, "lines", [{"plies_per_game": plies, "simulations_per_s": 0}])
        begin = now
        assert least <= play_against(coach, players[1], num_games, limit).num_games <= most
        # players get ready before, and whoever cannot be interrupted ends a ply that has begun in time
        assert now - begin <= 2 * ply_seconds + limit + 256 * ply_seconds


def test_an_opponent_that_thinks_for_too_long_is_interrupted_and_has_no_match(tmp_path, caplog):
    class Slow(RandomPlayer):
        """Thinks until it is interrupted."""

        name = "slow"

        def __init__(self, kernels):
            super().__init__(kernels, 0)
            self.asked = threading.Event()

        def select_actions(self, *arguments):
            assert self.asked.wait(60)
            raise Stopped

        def interrupt(self):
            self.asked.set()

    with RunFolder.create(tmp_path / "run", {}) as folder:
        coach = make_coach(folder, replace(TINY, minutes=0.005, generations=1))
        coach.lineup.kernels.game.compiled = False
        slow, quick = Slow(coach.lineup.kernels), RandomPlayer(coach.lineup.kernels, 0)
        evaluation = coach.evaluate([slow])
        assert evaluation["matches"] == []
        assert "no two games against slow were over in 0:00:00, so nothing is known about it" in caplog.text
        coach.stop.set()
        with pytest.raises(Stopped):
            coach.evaluate([Slow(coach.lineup.kernels), quick])


def test_another_seed_or_thread_count_is_refused_on_resume(undisturbed):
    with RunFolder.open(undisturbed) as folder, pytest.raises(RunFolderError, match="seed=0"):
        make_coach(folder, seed=3).run()


@pytest.mark.parametrize("name", sorted(registry.NAMES))
def test_shipped_presets_are_whole(name):
    presets = registry.load(name).presets()
    assert {"quick", "standard", "strong"} <= presets.keys()
    for config in presets.values():
        assert config_from_dict(RunConfig, json.loads(json.dumps(asdict(config))), "", config) == config
