"""The engine of a published file answers as the server does; and what cannot be published is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry, shipped
from alphazero.commands import publish
from alphazero.commands.shared import run_command
from alphazero.game.kernels import Kernels
from alphazero.players.contestants import make_player
from alphazero.wasm.looks import neighbours
from alphazero.web.one_file import _splits_words, note_of, up_to
from alphazero.web.seats import Slider
from tests.wasm.engines import needs_node, random_games
from tests.wasm.published import MARKUP, ask, on_server, shipped_page, small_net, small_page

PLAYER = {"id": "net", "step": 25}
WORDS_SPLIT = '"splits_words": false', '"splits_words": true'


def compare_positions(page: str, game: str, count: int) -> None:
    """Positions of random games at all depths, and their ends, as the server tells them."""
    rng, games = np.random.default_rng(3), random_games(Kernels(registry.load(game).game), count, seed=3)
    lists = [actions[: int(rng.integers(len(actions)))] for actions in games] + games
    questions = [{"ask": "position", "game": game, "actions": actions} for actions in lists]
    ended = 0
    for question, (answer,) in zip(questions, ask(page, *questions), strict=True):
        expected = on_server(game, question)
        for told in (answer, expected):
            told["view"]["clicks"] = sorted(map(str, told["view"]["clicks"]))
            told["view"]["pieces"].sort(key=lambda piece: piece["cell"])
            told["view"].update(text="", remark="")
            told["view"]["gained"] = pytest.approx(told["view"].get("gained", 0.0), abs=1e-6)  # float32 in the page
        assert answer == expected
        ended += bool(expected["view"]["winning"])
    assert ended or game in ("dots_and_boxes", "go5"), "no game ended with a marked line"


@needs_node
@pytest.mark.parametrize(
    "game",
    ["tictactoe", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hex", "dots_and_boxes", "go5"))],
)
def test_positions_are_the_servers(game: str):
    """The owners of boxes, the winning chain of Hex and the territory of Go included."""
    compare_positions(small_page(game), game, 40)


@needs_node
@pytest.mark.slow
def test_positions_of_connect4_are_the_servers():
    compare_positions(shipped_page("connect4", "club"), "connect4", 100)


@needs_node
def test_a_drawn_game_has_no_winning_chain():
    game = registry.load("tictactoe").game
    page = small_page("tictactoe").replace('"line": 3', '"line": 0')
    page = page.replace('"beside": []', f'"beside": {json.dumps(neighbours(game))}')
    drawn, won = [game.position(moves).actions for moves in ("b2 a1 c1 a3 a2 c2 b1 b3 c3", "a1 b1 a2 b2 a3")]
    (draw,), (win,) = ask(page, *({"ask": "position", "actions": list(actions)} for actions in (drawn, won)))
    assert (draw["view"]["outcome"], draw["view"]["winning"]) == (0, [])
    assert win["view"]["outcome"] == 1 and win["view"]["winning"]


@needs_node
def test_the_game_is_the_servers():
    names = ["tictactoe", "nim", "/home/me/tictactoe.py"]
    (game,), (other,), (same,), (welcome,) = ask(
        small_page("tictactoe"), *({"ask": "game", "game": name} for name in names), {"ask": "welcome"}
    )
    assert "this page has no game 'nim'" in other["error"] and same == game
    expected = on_server("tictactoe", {"ask": "game", "game": "tictactoe"})
    assert game["board"] == expected["board"] and game["title"] == expected["title"]
    assert game["moves_run_together"] == expected["moves_run_together"] and not game["oracle"]
    (player,) = game["players"]
    assert player.keys() == expected["players"][0].keys() and player["slider"].keys() == {
        "unit",
        "steps",
        "start",
        "measured",
    }
    assert player["title"] == MARKUP and player["note"].startswith(MARKUP)
    assert welcome["game"] == "tictactoe" and not welcome["watches"]


@needs_node
def test_searches_play_analyse_and_review():
    game = registry.load("tictactoe").game
    won = list(game.position("a1 b1 a2 b2").actions)
    short = list(game.position("a1 b1").actions)
    whole = list(game.position("a1 b1 a2 b2 a3").actions)
    move, policy, analysis, deeper, tree, review, over = ask(
        small_page("tictactoe"),
        {"ask": "move", "actions": won, "player": PLAYER, "seed": 1},
        {"ask": "policy", "actions": short, "player": PLAYER},
        {"ask": "analyse", "actions": short, "player": PLAYER, "side": 0, "limit": 300, "fresh": False},
        {"ask": "analyse", "actions": short, "player": PLAYER, "side": 0, "limit": 900, "fresh": False},
        {"ask": "tree", "path": [], "side": 0},
        {"ask": "review", "actions": whole, "player": PLAYER, "simulations": 50},
        {"ask": "move", "actions": whole, "player": PLAYER, "seed": 1},
    )
    assert move[-1]["word"] == "a3"
    assert sum(row["prior"] for row in policy[0]["policy"]) == pytest.approx(1, abs=1e-3)
    for answers, simulations in ((analysis, 300), (deeper, 900)):
        assert answers[-1]["simulations"] == simulations and not answers[-1]["more"]
        assert sum(line["visits"] for line in answers[-1]["lines"]) == simulations
        best = answers[-1]["lines"][0]
        assert game.position(short).play(best["moves"][0]) and len(best["words"]) == len(best["moves"])
        assert answers[-1]["proven"] or -1 <= answers[-1]["value"] <= 1
    assert tree[0]["visits"] == 900 and len(tree[0]["edges"]) == 7
    assert len(review) == len(whole) + 1 and review[-1]["rows"][0]["value"] == 1.0 and not review[-1]["more"]
    assert all(0 <= row["value"] <= 1 for answer in review for row in answer["rows"])
    assert "game is over" in over[0]["error"]


@needs_node
def test_the_file_searches_as_the_library_does():
    """The same best action and nearly the same values as `az.search`, whose network has more digits."""
    loaded = registry.load("tictactoe")
    question = {"ask": "analyse", "actions": [4], "player": PLAYER, "limit": 400, "fresh": True}
    report = ask(small_page("tictactoe"), question)[0][-1]
    found = az.search(
        loaded.game.position([4]), small_net("tictactoe"), config=az.SearchConfig(400, noise_fraction=0.0)
    )
    assert report["lines"][0]["action"] == found.best
    assert report["value"] == pytest.approx(found.value, abs=0.02)


def play_both(page: str, net: az.NeuralNet, name: str, count: int, steps: tuple[int, ...]) -> int:
    """The moves of the file that are those of the same net as a contestant, of `count` positions for each step."""
    loaded = registry.load(name)
    rng, games = np.random.default_rng(5), random_games(Kernels(loaded.game), count, seed=5)
    lists = [actions[: int(rng.integers(len(actions)))] for actions in games]
    asked = [(actions, step, i) for i, actions in enumerate(lists) for step in steps]
    questions = [
        {"ask": "move", "actions": actions, "player": {"id": "net", "step": step}, "seed": seed}
        for actions, step, seed in asked
    ]
    same = 0
    for (actions, step, seed), (*_, answer) in zip(asked, ask(page, *questions), strict=True):
        player = make_player(net, loaded, seed=seed, simulations=step)
        state = loaded.game.position(actions).state[None].copy()
        same += answer["action"] == player.select_actions(state, np.array([seed]), np.array([len(actions)]))[0]
    return same


@needs_node
def test_a_file_plays_as_its_net_does_in_a_match():
    """Weights have fewer digits in the file, so one move in a hundred may differ."""
    assert play_both(small_page("tictactoe"), small_net("tictactoe"), "tictactoe", 50, (0, 25)) >= 99


@needs_node
@pytest.mark.slow
def test_a_shipped_net_plays_in_its_file_as_in_a_match():
    net = az.load_net("club", registry.load("connect4").game)
    assert play_both(shipped_page("connect4", "club"), net, "connect4", 100, (0, 100)) >= 198


@needs_node
def test_capitals_count_only_where_two_words_differ_by_them():
    (read,), (unknown,) = ask(
        small_page("tictactoe"), {"ask": "position", "moves": "A1 b1"}, {"ask": "position", "moves": "d1"}
    )
    assert read["words"] == ["a1", "b1"] and "'d1' is not a legal action here" in unknown["error"]
    both = small_page("tictactoe").replace('"b1"', '"A1"')
    assert both != small_page("tictactoe")
    for moves, actions in (("A1 a1", [1, 0]), ("a1 A1 C1", [0, 1, 2])):
        ((read,),) = ask(both, {"ask": "position", "moves": moves})
        assert read["actions"] == actions


@needs_node
def test_games_are_saved_and_loaded_and_moves_are_read():
    (record,), (given_up,), (resigned,), (read,), (wrong,), (illegal,), (unknown,), (other,) = ask(
        small_page("tictactoe"),
        {"ask": "record", "actions": [0, 3, 1, 4, 2], "first": "You", "second": MARKUP},
        {"ask": "record", "actions": [4], "first": "You", "second": "net", "resigned": 1, "reason": "no time"},
        {"ask": "record", "actions": [4], "first": "You", "second": "net", "resigned": 0},
        {"ask": "position", "moves": "a1, B1 a2"},
        {"ask": "position", "moves": "a1 z9"},
        {"ask": "position", "actions": [0, 0]},
        {"ask": "everything"},
        {"ask": "load", "text": "[]"},
    )
    assert az.load_game("tictactoe").position(read["words"][0]).ply == 1 and len(read["actions"]) == 3
    assert "'z9' is not a legal action here (legal: " in wrong["error"] and "is not legal here" in illegal["error"]
    assert "does not know the question" in unknown["error"] and "contestants and moves" in other["error"]
    for saved, result, forfeit in ((given_up, "1-0", "net: no time"), (resigned, "0-1", "You: resigns")):
        assert {"result": result, "forfeit": forfeit}.items() <= json.loads(saved["text"]).items()
    ((loaded,),) = ask(small_page("tictactoe"), {"ask": "load", "text": record["text"]})
    assert (
        loaded["actions"] == [0, 3, 1, 4, 2] and loaded["contestants"] == ["You", MARKUP] and loaded["result"] == "1-0"
    )


@needs_node
def test_numbers_and_hyphens_are_read_and_boards_are_not():
    texts = ["1. b2 a1 2. c3", "1.b2 1...a1", "b2-a1-c3", "1. b2 3. a1", "b2--a1"]
    questions = [{"ask": "position", "game": "tictactoe", "moves": text} for text in texts]
    *right, (jump,), (twice,) = ask(small_page("tictactoe"), *questions)
    for (answer,), question in zip(right, questions, strict=False):
        assert answer["actions"] == on_server("tictactoe", question)["actions"]
    assert "3. is out of place" in jump["error"] and "'-a1' is not a legal action" in twice["error"]
    ((board,),) = ask(small_page("tictactoe"), {"ask": "position", "actions": [], "board": "X../.../..."})
    assert board["error"] == "this file sets up no boards: the page of alphazero serve does"


@needs_node
def test_moves_are_read_without_spaces_where_the_game_splits_them():
    """Tic-tac-toe does not; its page does once it is told so."""
    texts = ["a1B1 c1a2", "a1b9"]
    questions = [{"ask": "position", "moves": text} for text in texts]
    ((together,), _), page = ask(small_page("tictactoe"), *questions), small_page("tictactoe").replace(*WORDS_SPLIT)
    assert "'a1B1' is not a legal action here" in together["error"] and page != small_page("tictactoe")
    ((read,), (wrong,)) = ask(page, *questions)
    assert read["words"] == ["a1", "b1", "c1", "a2"] and "'b9' is not a legal action here" in wrong["error"]
    games = {name: _splits_words(registry.load(name).game) for name in ("othello", "connect4", "hex", "tictactoe")}
    assert games == {"othello": True, "connect4": True, "hex": False, "tictactoe": False}


@needs_node
@pytest.mark.slow
def test_moves_of_othello_are_read_as_the_server_reads_them():
    """In any case of letters, a pass among them."""
    rng, game, words = np.random.default_rng(1), registry.load("othello6").game, list[str]()
    while "pass" not in words[:-1]:
        position, words = game.start(), []
        while not position.terminal and "pass" not in words[:-1]:
            action = int(rng.choice(position.legal_actions))
            words.append(position.format(action))
            position = position.play(action)
    joined = "".join(words)
    texts = [joined, f"{joined[:12]} {joined[12:]}", joined.upper(), joined.replace("pass", ""), "-".join(words)]
    texts += [joined.replace("pass", spelling) for spelling in ("PA", "ps", "--", "@@")]
    texts.append(" ".join(f"{ply // 2 + 1}. {word}" if ply % 2 == 0 else word for ply, word in enumerate(words)))
    questions = [{"ask": "position", "game": "othello6", "moves": text} for text in texts]
    for question, (answer,) in zip(questions, ask(small_page("othello6"), *questions), strict=True):
        expected = on_server("othello6", question)
        assert (answer["actions"], answer["words"]) == (expected["actions"], expected["words"])


@needs_node
def test_games_that_name_the_file_of_the_game_are_loaded():
    """A match of one's own game keeps the name by which it was loaded, which need not be the game's."""
    page = small_page("tictactoe").replace('"loaded_as": "tictactoe"', '"loaded_as": "elsewhere/my_rules.py"')
    record = {"contestants": ["a", "b"], "opening": [], "moves": ["a1"], "result": "*"}
    names = [
        "my_rules.py",
        "tictactoe",
        "/home/me/tictactoe.py",
        "games\\tictactoe.py",
        "/tictactoe/other.py",
        5,
        "hex",
    ]
    answers = ask(page, *({"ask": "load", "text": json.dumps(record | {"game": name})} for name in names))
    assert [answer.get("actions") for (answer,) in answers] == [[0]] * 4 + [None] * 3
    assert answers[0][0]["game"] == "tictactoe"
    assert answers[-1][0]["error"] == "the file is a game of hex, and this page plays tictactoe"


def test_a_page_tells_nobody_where_the_game_lay():
    assert '"loaded_as": "tictactoe"' in small_page("tictactoe") and "home/somebody" not in small_page("tictactoe")


def test_a_strangers_numbers_are_left_out_of_the_note():
    assert note_of({"parameters": 12, "hours": 10**400, "rating": {"elo": 10**5000, "above": "x"}}) == "12 parameters"
    assert note_of({"rating": {"elo": 50, "above": "club"}}) == "+50 Elo above club"


def test_no_name_ends_a_script():
    page = small_page("tictactoe")
    assert page.count("<script") == page.count("</script>") == 4
    outside = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.DOTALL)
    assert "<img src=x" not in outside and "{{7*7}}" in outside
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)""", outside)


@pytest.mark.parametrize(
    ("steps", "most", "offered", "start"),
    [
        ((0, 25, 100, 400, 1600), 20_000, (0, 25, 100, 400, 1600), 100),
        ((0, 25, 100, 400, 1600), 50, (0, 25), 25),
        ((200, 400), 90, (90,), 90),
    ],
)
def test_a_page_offers_no_more_simulations_than_it_has_room_for(steps, most, offered, start):
    slider = up_to(Slider("simulations", steps, 100 if 100 in steps else steps[-1], {}), most)
    assert (slider.steps, slider.start) == (offered, start)


def test_every_entry_of_a_page_is_documented():
    contents = re.search(
        r'<script type="application/json" id="file">(.*?)</script>', small_page("tictactoe"), re.DOTALL
    )
    assert contents
    told = (shipped.FOLDER.parent / "docs" / "reference" / "files.md").read_text().partition("## A published page")[2]
    names = " ".join(re.findall(r"^\| (.*?) \|", told, re.MULTILINE))
    assert {*json.loads(contents[1]), "score"} == set(re.findall(r"`(\w+)`", names))


def publish_page(*argv: str) -> int:
    return run_command(publish.main, list(argv))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["best", "page.html", "--game", "openspiel:tic_tac_toe"], "best"),
        (["best", "page.htm", "--game", "connect4"], "a .safetensors file, or a page into a .html file"),
        (["nothing", "page.html", "--game", "connect4"], "nothing"),
        (["best", "no/such/folder/page.html", "--game", "connect4"], "a folder that exists"),
    ],
)
def test_wrong_words_get_one_sentence(argv: list[str], said: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert publish_page(*argv) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "name", "most"), [("connect4", "club", 1e6), ("connect4", "best", 3e6), ("othello", "best", 3e6)]
)
def test_the_command_writes_a_page_of_its_size(game: str, name: str, most: float, tmp_path: Path, capsys):
    assert publish_page(name, str(tmp_path / "page.html"), "--game", game) == 0
    assert "is written" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text()
    assert len(page.encode()) < most
    ((answer,),) = ask(page, {"ask": "move", "actions": [], "player": PLAYER, "seed": 0})
    assert answer["word"] in registry.load(game).game.start().format(answer["action"])
