"""Names on the command line and the players that they mean."""

import dataclasses
import os
import tracemalloc

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import CheckpointError, InvalidSetting, UnknownName
from alphazero.nets.torch_net import TorchNet
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.contestants import (
    PLAY,
    ContestantText,
    check_announced,
    checkpoint_of,
    game_of,
    load_net,
    make_player,
    open_opponents,
    weights_announced,
)
from alphazero.players.human import HumanPlayer
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Player
from alphazero.search.mcts import SearchConfig
from alphazero.storage.checkpoint import load_checkpoint, save_checkpoint
from alphazero.storage.files import sha256_of
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.lineup import read_net_settings

TIC_TAC_TOE, CONNECT_4 = registry.load("tictactoe"), registry.load("connect4")


def open_player(text, loaded=TIC_TAC_TOE, simulations=None, device="auto"):
    return make_player(text, loaded, seed=1, threads=2, simulations=simulations, device=device)


def first_action(player: Player, loaded=TIC_TAC_TOE) -> int:
    state = loaded.game.start().state[None]
    return int(player.select_actions(state, np.zeros(1, np.int64), np.zeros(1, np.int64))[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder of tic-tac-toe with two generations, the first of them the best."""
    path = tmp_path_factory.mktemp("runs") / "toe"
    net = TIC_TAC_TOE.make_net(TIC_TAC_TOE.game, {"blocks": 1, "channels": 8})
    with RunFolder.create(path, {}) as folder:
        for generation in (1, 2):
            file = path / f"generation_{generation:04d}.safetensors"
            net.save(file, {"generation": generation})
            names = (file.name, file.with_suffix(".json").name)
            folder.commit(generation, {name: sha256_of(path / name) for name in names}, {"best": 1})
    return path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("random", RandomPlayer),
        ("greedy", GreedyPlayer),
        ("minimax:3", MinimaxPlayer),
        ("mcts:20", SearchPlayer),
        ("mcts:20@c_puct=2,temperature=0.5,prove=false,leaves_per_step=4", SearchPlayer),
        ("mcts@simulations=20", SearchPlayer),
        ("human", HumanPlayer),
    ],
)
def test_names_mean_players(text, kind):
    player = open_player(text)
    assert type(player) is kind and player.name == text
    assert kind is HumanPlayer or 0 <= first_action(player) < 9


def search_config(player) -> SearchConfig:
    assert isinstance(player, SearchPlayer)
    return player.config


def test_settings_reach_the_search_by_their_type():
    text = "mcts:20@c_puct=2,gumbel_actions=4,prove=False,noise_fraction=0.5"
    expected = SearchConfig(
        num_simulations=20, c_puct=2.0, gumbel_actions=4, prove=False, noise_fraction=0.5, reuse_subtree=False
    )
    assert search_config(open_player(text)) == expected
    assert search_config(open_player("mcts:20")).noise_fraction == 0.0


def test_every_setting_of_the_search_can_be_given():
    for field in dataclasses.fields(SearchConfig):
        if field.name not in ("num_simulations", "reuse_subtree"):
            player = open_player(f"mcts:20@{field.name}={getattr(PLAY, field.name)}")
            assert search_config(player) == search_config(open_player("mcts:20"))


def test_who_says_the_number_of_simulations(run):
    assert search_config(open_player("mcts", simulations=30)).num_simulations == 30
    assert search_config(open_player("mcts:20", simulations=30)).num_simulations == 20
    assert search_config(open_player("mcts@simulations=20", simulations=30)).num_simulations == 20
    assert search_config(open_player("mcts@num_simulations=20", simulations=30)).num_simulations == 20
    assert search_config(open_player(str(run))).num_simulations == SearchConfig().num_simulations
    assert search_config(open_player(str(run), simulations=30)).num_simulations == 30
    assert search_config(open_player(f"{run}@simulations=20", simulations=30)).num_simulations == 20
    assert isinstance(open_player(f"{run}@simulations=0", simulations=30), PolicyPlayer)
    assert isinstance(open_player(f"{run}@temperature=1", simulations=0), PolicyPlayer)


def test_a_net_considers_more_actions_than_in_learning_where_simulations_suffice(tmp_path):
    """One for every 16, since sequential halving never looks at those that it leaves out at the root."""
    run = tmp_path / "net.safetensors"
    net = TIC_TAC_TOE.make_net(TIC_TAC_TOE.game, {"blocks": 1, "channels": 8})
    net.save(run, {"search": dataclasses.asdict(SearchConfig(num_simulations=16, gumbel_actions=4))})

    def considered(text, simulations):
        return search_config(open_player(text, simulations=simulations)).gumbel_actions

    assert [considered(str(run), n) for n in (1, 16, 79, 80, 1600)] == [4, 4, 4, 5, 100]
    assert considered(f"{run}@simulations=320", 8) == 20
    assert considered(f"{run}@gumbel_actions=2", 320) == 2
    assert considered(f"{run}@gumbel_actions=0", 320) == 0  # another kind of search, which looks at all of them
    assert considered("mcts:320@gumbel_actions=3", None) == 3 and considered("mcts:320", None) == 0


@pytest.mark.parametrize("ending", ["", ":1", ":2", "/generation_0002.safetensors", ":2@simulations=8,temperature=1"])
def test_a_run_folder_a_generation_and_a_file_are_nets(run, ending):
    player = open_player(f"{run}{ending}", simulations=8)
    assert isinstance(player, SearchPlayer) and 0 <= first_action(player) < 9
    assert game_of(ContestantText.parse(f"{run}{ending}")) == "tictactoe"


@pytest.mark.parametrize(
    ("device", "there", "used"),
    [("auto", True, "cuda"), ("auto", False, "cpu"), ("cpu", True, "cpu")],
)
def test_a_net_computes_where_it_is_asked_to(run, monkeypatch, device: str, there: bool, used: str):
    devices: list[str] = []
    monkeypatch.setattr("alphazero.nets.devices._gpus", lambda: ("0",) * there)
    monkeypatch.setattr(TorchNet, "use_device", lambda self, name: devices.append(name))
    open_player(str(run), device=device)
    open_opponents([str(run)], "--opponents", TIC_TAC_TOE, seed=0, threads=1, device=device)
    assert devices == [used, used]


def test_a_path_may_hold_signs_of_the_grammar(run, tmp_path, monkeypatch):
    folder = tmp_path / "a@b:c,d"
    folder.symlink_to(run)
    assert game_of(ContestantText.parse(f"{folder}")) == "tictactoe"
    assert search_config(open_player(f"{folder}:1@simulations=9")).num_simulations == 9
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_player("a@b:c,d@simulations=0"), PolicyPlayer)
    (tmp_path / "lr@rate=1").symlink_to(run)
    assert search_config(open_player("./lr@rate=1@simulations=9")).num_simulations == 9
    (tmp_path / "random").symlink_to(run)
    assert isinstance(open_player("random"), RandomPlayer) and game_of(ContestantText.parse("random")) is None
    assert isinstance(open_player("./random@simulations=0"), PolicyPlayer)


def test_the_game_may_bring_contestants_of_its_own():
    seen = []

    def make_solver(kernels, argument, settings, seed, threads):
        seen.append((kernels.game.name, argument, dict(settings), seed, threads))
        return RandomPlayer(kernels, 1)

    loaded = dataclasses.replace(TIC_TAC_TOE, contestants={"solver": make_solver})
    assert open_player("solver:deep@book=yes", loaded).name == "solver:deep@book=yes"
    assert seen == [("tictactoe", "deep", {"book": "yes"}, 1, 2)]
    with pytest.raises(UnknownName, match="did you mean 'solver'"):
        open_player("solvr", loaded)


def test_a_folder_that_is_called_as_a_games_own_contestant_is_not_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solver").mkdir()
    assert checkpoint_of(ContestantText.parse("solver"), CONNECT_4) is None


def test_nets_that_are_shipped_have_names(tmp_path, monkeypatch):
    assert set(CONNECT_4.nets) == {"beginner", "club", "best"}
    for name, path in CONNECT_4.nets.items():
        assert checkpoint_of(ContestantText.parse(f"{name}@simulations=8"), CONNECT_4) == (path, sha256_of(path))
    player = open_player("beginner@simulations=8", CONNECT_4)
    assert isinstance(player, SearchPlayer) and player.num_simulations == 8 and player.name == "beginner@simulations=8"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beginner").mkdir()  # as with every known name, a folder that is called so is ./beginner
    assert isinstance(open_player("beginner", CONNECT_4), SearchPlayer)
    with pytest.raises(CheckpointError):
        open_player("./beginner", CONNECT_4)
    with pytest.raises(InvalidSetting, match="beginner takes no argument"):
        open_player("beginner:3", CONNECT_4)
    with pytest.raises(UnknownName, match=r"did you mean 'beginner'\? \(allowed: beginner, best, club, "):
        open_player("beginer", CONNECT_4)


def test_a_net_that_is_shipped_lies_where_paths_hold_signs_of_the_grammar(run):
    net = run.rename(run.parent / "a@b=c:2") / "generation_0001.safetensors"
    loaded = dataclasses.replace(TIC_TAC_TOE, nets={"own": net, "random": net})
    assert isinstance(open_player("own@simulations=0", loaded), PolicyPlayer)
    assert isinstance(open_player("random", loaded), RandomPlayer)
    net.parent.rename(run)


def test_only_checkpoints_know_a_game():
    assert [game_of(ContestantText.parse(text)) for text in ("random", "mcts:100", "no such thing")] == [None] * 3


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", UnknownName, "random"),
        ("radnom", UnknownName, "did you mean 'random'"),
        ("temperature=1", UnknownName, "into quotation marks"),
        ("random@seed=1", InvalidSetting, "random takes no settings"),
        ("random:", InvalidSetting, "random takes no argument"),
        ("minimax", InvalidSetting, "write minimax:4"),
        ("minimax:0", InvalidSetting, "between 1 and 9"),
        ("mcts", InvalidSetting, "write mcts:400"),
        ("mcts:1.5", InvalidSetting, "not '1.5'"),
        ("mcts:-3", InvalidSetting, "simulations must lie between"),
        ("mcts:" + "9" * 5000, InvalidSetting, "a contestant has 4,096 at most"),
        ("mcts:9@simulations=9", InvalidSetting, "twice"),
        ("mcts:9@c_puct=1,c_puct=2", InvalidSetting, "once"),
        ("mcts:9@temprature=1", UnknownName, "did you mean 'temperature'"),
        ("mcts:9@c_puct=high", InvalidSetting, "takes a number, not 'high'"),
        ("mcts:9@prove=1", InvalidSetting, "takes true or false"),
        ("mcts:9@c_puct=1,prove", InvalidSetting, "setting=value"),
        ("runs/none", CheckpointError, "is no file or folder"),
        ("/", CheckpointError, "neither"),
        ("mcts:0", InvalidSetting, "at least 1"),
    ],
)
def test_what_is_wrong_is_said(text, kind, message):
    with pytest.raises(kind) as caught:
        open_player(text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_net_of_another_game_is_refused(run):
    with pytest.raises(CheckpointError, match="a net for tictactoe, not for connect4"):
        open_player(str(run), CONNECT_4)


def test_a_generation_that_is_not_there_and_a_damaged_card(run, tmp_path):
    with pytest.raises(CheckpointError, match="no generation 7"):
        open_player(f"{run}:7")
    file = tmp_path / "net.safetensors"
    file.write_bytes(b"x")
    file.with_suffix(".json").write_text("{}")
    for ask in (open_player, game_of):
        with pytest.raises(CheckpointError):
            ask(ContestantText.parse(str(file)))


@pytest.mark.parametrize(
    "sizes", [{"channels": 4096, "blocks": 4096}, {"channels": 4096, "bottleneck": 4096}, {"value_hidden": 4096}]
)
def test_a_card_that_announces_more_than_its_file_can_hold_is_refused_before_anything_is_made(sizes, tmp_path):
    _, card = load_checkpoint(CONNECT_4.nets["best"])
    path = tmp_path / "huge.safetensors"
    save_checkpoint(path, {"weights": np.zeros(1000, np.float32)}, {**card, "net": card["net"] | sizes})
    tracemalloc.start()
    with pytest.raises(CheckpointError, match="is too small for the network that its card announces"):
        load_net(str(path), CONNECT_4)
    with pytest.raises(CheckpointError, match="is too small for the network that its card announces"):
        read_net_settings(str(path), CONNECT_4, next(iter(CONNECT_4.presets().values())))
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


WIDE = {
    "connect4": {"blocks": 1, "channels": 1, "head_channels": 512, "value_hidden": 512},
    "othello": {"blocks": 1, "channels": 1, "head_channels": 4096, "value_hidden": 1},
    "gomoku": {"blocks": 1, "channels": 512, "bottleneck": 1, "head_channels": 1, "lines": 512, "line_length": 5},
}
"""Sizes whose weights are almost all in layers that depend on the board."""


@pytest.mark.parametrize("game", WIDE)
def test_sizes_on_a_card_are_held_against_the_file_with_the_board(game, tmp_path):
    loaded, sizes = registry.load(game), WIDE[game]
    net = loaded.make_net(loaded.game, sizes)
    path = tmp_path / "wide.safetensors"
    net.save(path, {"net": sizes})
    check_announced(path, sizes, loaded)
    weights = sum(parameter.numel() for parameter in net.module.parameters())
    os.truncate(path, int(0.8 * 2 * weights))  # the least type of weights takes 2 bytes
    with pytest.raises(CheckpointError, match="is too small for the network that its card announces"):
        check_announced(path, sizes, loaded)


def test_the_sizes_of_every_game_are_no_more_than_its_net_has():
    for name in ("tictactoe", "connect4", "othello", "hex", "dots_and_boxes"):
        loaded = registry.load(name)
        for preset in loaded.presets().values():
            net = loaded.make_net(loaded.game, preset.net_settings)
            weights = sum(parameter.numel() for parameter in net.module.parameters())
            assert 0.8 * weights < weights_announced(preset.net_settings, loaded) <= weights, name


def test_a_card_without_a_game_is_refused(run, tmp_path):
    tensors, _ = load_checkpoint(run / "generation_0001.safetensors")
    save_checkpoint(tmp_path / "net.safetensors", tensors, {"parameters": 1})
    with pytest.raises(CheckpointError, match="the card of .*: game is missing"):
        game_of(ContestantText.parse(str(tmp_path / "net.safetensors")))
