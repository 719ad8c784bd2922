"""Runs of a game with dice: the same whatever interrupts them, with games that people can step through."""

from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import SearchConfig
from alphazero.storage.run_folder import RunFolder
from alphazero.training.config import EvaluationConfig, SelfPlayConfig
from alphazero.training.parts.journal import Journal
from alphazero.training.presets import presets
from alphazero.training.selfplay import SelfPlay
from alphazero.training.selfplay.shown_games import actions_of, read_shown, shown_generations
from tests.search.test_alone import CLIMB, POINTS, SIZE
from tests.search.test_dice import RACE, planted
from tests.training.test_coach import TINY, checksums, figures, make_coach, run_all

CONFIG = replace(
    TINY, generations=2, self_play=SelfPlayConfig(games_per_generation=8, num_slots=6),
    gate=replace(TINY.gate, games=2), evaluation=EvaluationConfig(opponents=()),
)  # fmt: skip


@pytest.mark.parametrize("game", [RACE, CLIMB], ids=lambda game: game.name)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, game: Game, monkeypatch: pytest.MonkeyPatch):
    """Games in progress go on with the dice that they would have had."""
    loaded = registry.of(game)
    run_all(tmp_path / "whole", CONFIG, loaded)
    begin = Journal.begin

    def interrupted(journal, number):
        if number == 2:
            raise KeyboardInterrupt
        return begin(journal, number)

    monkeypatch.setattr(Journal, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_all(tmp_path / "run", CONFIG, loaded)
    monkeypatch.setattr(Journal, "begin", begin)
    with RunFolder.open(tmp_path / "run") as folder:
        make_coach(folder, CONFIG, loaded).run()
    assert checksums(tmp_path / "run") == checksums(tmp_path / "whole")
    assert figures(tmp_path / "run") == figures(tmp_path / "whole")
    thrown = 0
    for generation in shown_generations(tmp_path / "run"):
        for record in read_shown(tmp_path / "run", generation):
            positions = record.positions(game)
            assert positions[-1].terminal
            thrown += sum(bool(position.chances) for position in positions)
    assert thrown


def test_samples_are_the_positions_where_a_player_moves_and_the_result_is_theirs():
    kernels = Kernels(RACE)
    config = SelfPlayConfig(random_plies=6, td_lambda=1.0)  # dice make games differ: they begin at the start
    games = SelfPlay(kernels, config, SearchConfig(num_simulations=8), planted, num_slots=4, seed=1)
    samples = games.play(12)
    assert len(games.finished_games()) == 4
    for finished in games.finished_games():
        actions = actions_of(RACE, finished, seed=1)
        assert actions is not None
        history = RACE.position(actions).history
        deciding = [at for at in history if not at.chances]
        np.testing.assert_array_equal(np.array([at.state for at in deciding]), finished.states)
        end = deciding[-1]
        for at in deciding[:-1]:
            rows = np.flatnonzero((samples.states == at.state).all(axis=1))
            result = end.outcome * (1 if at.to_play == 0 else -1)
            assert result in samples.outcomes[rows]
    assert not samples.states[:, 2].any(), "no coin is due where a player moves"


def test_self_play_looks_at_each_action_as_often_where_there_are_few(monkeypatch: pytest.MonkeyPatch):
    kernels, given = Kernels(registry.load("backgammon").game), []
    games = SelfPlay(
        kernels, SelfPlayConfig(), SearchConfig(num_simulations=6, gumbel_actions=4), planted_anywhere, 4, 1
    )
    start = games.search.start

    def told(trees, states, numbers, plies, actions, budgets):
        given.extend(zip(kernels.describe_all(states)[0].sum(axis=1).tolist(), budgets.tolist(), strict=True))
        start(trees, states, numbers, plies, actions, budgets)

    monkeypatch.setattr(games.search, "start", told)
    games.play(2)
    assert {count: budget for count, budget in given if count <= 4} == {1: 2, 2: 3, 3: 5, 4: 6}
    assert {budget for count, budget in given if count > 4} == {6}


@pytest.mark.parametrize("considered", [0, 4])
def test_the_simulations_that_are_told_are_those_of_the_searches(considered: int, monkeypatch: pytest.MonkeyPatch):
    """Searches of few actions are short; a run told four times the simulations of Backgammon that it had made."""
    config, visits = SearchConfig(num_simulations=6, gumbel_actions=considered), []
    kernels = Kernels(registry.load("backgammon").game)
    games = SelfPlay(kernels, SelfPlayConfig(), config, planted_anywhere, 4, 1)
    read = games.search.read

    def told(trees):
        found = read(trees)
        visits.append(int(found.visit_counts.sum()))
        return found

    monkeypatch.setattr(games.search, "read", told)
    games.play(2)
    assert games.num_simulations == sum(visits)
    assert (sum(visits) < 6 * games.num_positions) == (considered > 0)


def test_the_presets_for_ones_own_game_consider_no_more_actions_than_it_has():
    """Else each action of a die with two choices got an eighth of the simulations."""
    for game in (RACE, CLIMB, registry.load("connect4").game):
        for preset in presets(game).values():
            assert preset.search.gumbel_actions == min(16, game.num_actions)


def planted_anywhere(states, legal_masks):
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)


@pytest.mark.parametrize("td_lambda", [1.0, 0.5])
def test_the_targets_of_a_game_for_one_are_the_points_still_to_come(td_lambda: float):
    """By hand: G = (1 - lambda) value + lambda (points until the next ply + its G); at the end those that it brings."""
    config = SelfPlayConfig(td_lambda=td_lambda)
    games = SelfPlay(Kernels(CLIMB), config, SearchConfig(num_simulations=8), planted, num_slots=1, seed=1)
    for _ in range(5):
        samples, finished = games.play(1), games.finished_games()[0]
        states, values = finished.states, games.past.values[0]
        points = states[:, POINTS].astype(float)
        target = CLIMB.plain_rules.terminal_value(states[-1]) - points[-1]
        for ply in reversed(range(len(samples))):
            gained = target + points[ply + 1] - points[ply]
            target = (1 - td_lambda) * values[ply] * SIZE + td_lambda * gained
            assert samples.values[ply] * SIZE == pytest.approx(target, abs=1e-4)
