"""A net of a run becomes one to ship, with a card that tells the truth about it."""

import shlex
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.commands import publish
from alphazero.commands import train as program
from alphazero.commands.shared import parse, run_command
from alphazero.game.kernels import kernels_of
from alphazero.players.contestants import load_net
from alphazero.storage.checkpoint import load_checkpoint, read_card
from alphazero.storage.metrics_file import read_metrics

TRAINING = shlex.split(
    "--game tictactoe --generations 3 --net.blocks 1 --net.channels 8 --search.num-simulations 4 --gate.games 4 "
    "--gate.simulations 2 --self-play.games-per-generation 8 --evaluation.opponents random --evaluation.games 2 "
    "--evaluation.simulations 2 --threads 1 --seed 3"
)
FAST = ["--opponents", "random", "greedy", "--games", "6", "--match-simulations", "4", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tictactoe-1"
    program.main([*TRAINING, "--run", str(folder)])
    return folder


def published(run, tmp_path, *more):
    output = tmp_path / "net.safetensors"
    words = [f"{run}:2", str(output), "--overwrite", "--description", "A test.", *FAST, *more]
    assert run_command(publish.main, words) == 0
    return load_checkpoint(output)


@pytest.fixture(scope="module")
def net(run, tmp_path_factory):
    """The tensors and the card of a net that was published, and its file."""
    folder = tmp_path_factory.mktemp("published")
    return *published(run, folder), folder / "net.safetensors"


def test_the_weights_are_those_of_the_generation(run, net):
    tensors, card, _ = net
    expected, _ = load_checkpoint(run / "generation_0002.safetensors")
    assert tensors.keys() == expected.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == (np.float16 if tensor.ndim > 1 else expected[name].dtype)
        assert (tensor == expected[name].astype(tensor.dtype)).all()
    assert card["generation"] == 2 and card["description"] == "A test." and card["game"] == "tictactoe"


def test_a_published_net_is_half_as_large_and_answers_nearly_alike(run, net):
    game, (*_, file) = registry.load("tictactoe"), net
    net, half = (load_net(name, game, "cpu") for name in (f"{run}:2", str(file)))
    kernels = kernels_of(game.game)
    states = kernels.start_states(1)
    planes = kernels.observations(states)
    masks, _, _ = kernels.describe_all(states)
    assert all(answer.dtype == np.float32 for each in (net, half) for answer in each.evaluate(planes, masks))
    # in float32: a processor that multiplies bf16 rounds both nets' weights alike, most of the time
    with torch.no_grad():
        answers, of_half = (each.frozen_float()(torch.from_numpy(planes).float()) for each in (net, half))
    for answer, other in zip(answers, of_half, strict=True):
        torch.testing.assert_close(other, answer, rtol=0, atol=2e-3)
    assert any((other != answer).any() for answer, other in zip(answers, of_half, strict=True)), "it is rounded"
    sizes = [path.stat().st_size for path in (run / "generation_0002.safetensors", file)]
    assert sizes[1] < 0.75 * sizes[0], "its many small tensors and the header stay as they are"


def test_a_tensor_that_float16_cannot_hold_stays_as_it_is():
    tensors = {
        "large": np.full((2, 2), 7e4, np.float32), "small": np.full((2, 2), 0.1, np.float32),
        "vector": np.full(3, 0.1, np.float32), "counts": np.ones((2, 2), np.int64),
        "empty": np.ones((0, 3), np.float32),
    }  # fmt: skip
    kinds = {name: tensor.dtype for name, tensor in publish.narrowed(tensors).items()}
    assert kinds == {
        "large": np.float32, "small": np.float16, "vector": np.float32, "counts": np.int64, "empty": np.float16
    }  # fmt: skip


def test_the_card_counts_what_the_net_was_made_from(run, net):
    _, card, _ = net
    first_two = read_metrics(run)[:2]
    assert card["data"]["generations"] == 2
    assert card["data"]["games"] == sum(line["games"] for line in first_two) >= 16
    assert card["data"]["positions"] == sum(line["positions"] for line in first_two)
    assert card["hours"] == round(first_two[1]["seconds"] / 3600, 3)
    assert "1 thread;" in card["hardware"]


def test_the_card_tells_the_device_of_the_run_and_not_that_of_the_publishing_machine(run, tmp_path, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "another")
    before, _, after = published(run, tmp_path)[1]["hardware"].partition("; ")
    assert before == "learned on cpu with 1 thread" and after.startswith("measured on another, ")


def test_the_card_says_what_the_run_started_from(run, tmp_path):
    folder = tmp_path / "next"
    program.main([*TRAINING, "--initial-net", f"{run}:3", "--run", str(folder)])
    origin = read_card(run / "generation_0003.json")["card_sha256"]
    assert published(folder, tmp_path)[1]["started_from"] == {"net": f"{run}:3", "card_sha256": origin}


def test_the_card_has_the_matches_and_the_rating_above_the_last_opponent(net):
    _, card, _ = net
    assert [match["opponent"] for match in card["matches"]] == ["random", "greedy"]
    assert all(match["wins"] + match["draws"] + match["losses"] == 6 for match in card["matches"])
    low, high = card["rating"]["interval"]
    assert card["rating"]["above"] == "greedy" and low <= card["rating"]["elo"] <= high
    assert card["benchmark"] == {}  # the game has none


def test_the_benchmark_is_taken_at_every_number_of_simulations(run, tmp_path, monkeypatch):
    seen = []
    loaded = replace(
        registry.load("tictactoe"),
        make_benchmark=lambda game: lambda player: seen.append(player) or {"planted": float(len(seen))},
    )
    monkeypatch.setattr("alphazero.catalogue.registry.load", lambda name: loaded)
    _, card = published(run, tmp_path, "--simulations", "0", "7")
    assert card["benchmark"] == {"0": {"planted": 1.0}, "7": {"planted": 2.0}}
    assert [getattr(player, "num_simulations", 0) for player in seen] == [0, 7]


@pytest.mark.parametrize(
    "flags",
    [
        TRAINING[2:],
        ["--gate.no-enabled", "--minutes", "2.5", "--search.c-puct", "2.0", "--seed", "7"],
        ["--preset", "standard", "--net.blocks", "3", "--evaluation.opponents", "random", "minimax:2"],
    ],
)
def test_the_command_on_the_card_gives_the_same_settings(flags):
    """Settings to words and back again, through the very parser of main.py."""
    expect_the_same_settings("tictactoe", flags)


def test_the_command_of_a_run_that_began_with_a_net_gives_its_sizes(run):
    """Those of the preset, while those of the net, 1x8, are what the parser takes for granted."""
    sizes = asdict(registry.load("tictactoe").presets()["quick"].net)
    flags = [word for name, size in sizes.items() for word in (f"--net.{name.replace('_', '-')}", str(size))]
    assert sizes["channels"] != 8
    expect_the_same_settings("tictactoe", ["--initial-net", f"{run}:3", *flags])


def test_the_command_of_a_run_from_before_a_setting_was_there_has_what_held_then():
    settings = asdict(registry.load("connect4").presets()["standard"])
    del settings["initial_net"], settings["self_play"]["epsilon_after"]
    words = publish.command_of(
        registry.load("connect4"), {"game": "connect4", "seed": 0, "threads": 2, "settings": settings}
    )
    assert words.endswith("--preset standard --seed 0 --self-play.epsilon-after 0")


def expect_the_same_settings(game, flags):
    loaded = registry.load(game)

    def options(words):
        given = program._first_look(words)
        preset = program.find_preset(given.preset, loaded, given.initial_net)
        return parse(program.Options, words, default=program.Options(config=preset))

    chosen = options(["--game", game, *flags])
    saved = {"game": game, "seed": chosen.seed, "threads": 2, "settings": asdict(chosen.config)}
    words = shlex.split(publish.command_of(loaded, saved))
    assert words[:2] == ["python", "main.py"]
    again = options(words[2:])
    assert again.config == chosen.config and again.seed == chosen.seed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{run}:9", "{tmp}/net.safetensors"], "no generation 9"),
        (["{run}:0", "{tmp}/net.safetensors"], "has no figures of this net"),
        (["{run}", "{tmp}/net.pt"], ".safetensors"),
        (["{run}", "{tmp}/net.safetensors", "--games", "0"], "--games must be 2 or more"),
        (["{run}", "{tmp}/net.safetensors", "--simulations", "0", "5000000"], "between 0 and 1,000,000"),
        (["{run}", "{tmp}/net.safetensors", "--opponents", "nobody"], "unknown contestant"),
        (["{run}"], "missing"),
    ],
)
def test_what_cannot_be_published_is_refused_in_a_sentence(arguments, says, run, tmp_path, capsys):
    words = [word.format(run=run, tmp=tmp_path) for word in arguments]
    assert run_command(publish.main, words) == 2
    message = capsys.readouterr().err
    assert says in message.lower() and "Traceback" not in message and len(message.strip().splitlines()) == 1
    assert not list(tmp_path.glob("net.*"))


def test_a_page_of_the_run_in_this_folder_is_named_after_the_folder(run, tmp_path, capsys, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "alphazero.web.one_file.make_file", lambda loaded, net, title, *more: titles.append(title) or ""
    )
    monkeypatch.chdir(run)
    for net in (".", str(run), f"../{run.name}/"):
        assert run_command(publish.main, [net, str(tmp_path / "page.html"), "--overwrite"]) == 0
    assert titles == [run.name] * 3


def test_a_checkpoint_outside_a_run_is_refused(net, tmp_path, capsys):
    assert run_command(publish.main, [str(net[2]), str(tmp_path / "again.safetensors")]) == 2
    assert "is not a run folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option",
    ["--opponents random", "--threads 5000"],
)
def test_a_page_is_not_measured_so_what_measures_is_refused(option: str, tmp_path, capsys, monkeypatch):
    made = []
    monkeypatch.setattr("alphazero.web.one_file.make_file", lambda *_: made.append(1) or "a page")
    page = str(tmp_path / "page.html")
    assert run_command(publish.main, ["best", page, *option.split()]) == 2
    assert "goes only with --game, --overwrite and --description" in capsys.readouterr().err and not made
    (tmp_path / "page.html").touch()
    allowed = ["--game", "connect4", "--overwrite", "--description", "a page"]
    assert run_command(publish.main, ["best", page, *allowed]) == 0 and len(made) == 1
