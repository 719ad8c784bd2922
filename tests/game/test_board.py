"""Boards as data, and pictures of them: every registered game, the tests' own games, and games from elsewhere."""

import functools
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.adapters.alpha_zero_general import GeneralGame
from alphazero.errors import GameError, LawBroken
from alphazero.game import Board, Game, Piece, Position, enclosed, grid_cells, images_of_square
from alphazero.game.drawing import _Picture
from alphazero.game.glyphs import GLYPHS
from alphazero.game.validator import validate
from games.tictacmo.game import TicTacMo
from games.tictactoe.game import TicTacToe
from tests.catalogue import general_games
from tests.conftest import kernels_by_name
from tests.game.double_move_game import DoubleMove

SVG = "{http://www.w3.org/2000/svg}"


def random_positions(game: Game, num_games: int = 3) -> list[Position]:
    """All positions of random games, from the start to the end."""
    rng, found = np.random.default_rng(7), []
    for _ in range(num_games):
        position = game.start()
        found.append(position)
        while not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
            found.append(position)
    return found


@functools.cache
def positions_of(name: str) -> list[Position]:
    """Ten positions of random games, among them a start and ends."""
    game = kernels_by_name(name).game
    found = random_positions(game)
    ends = [position for position in found if position.terminal][:2]
    return [found[0], *ends, *(found[i] for i in np.random.default_rng(8).permutation(len(found))[:7])]


def texts(svg: str) -> list[str]:
    """The words in a picture, after a check that a parser of XML takes it."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert {element.tag for element in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "g", "path", "circle", "rect", "text", "title", "tspan")
    }
    return [element.text or "" for element in root.iter() if element.tag in (f"{SVG}text", f"{SVG}tspan")]


# --- every registered game ---


def test_every_legal_action_has_a_click_and_every_click_one_legal_action(game: Game):
    for position in positions_of(game.name):
        clicks = position.view.clicks
        assert sorted({click.action for click in clicks}) == position.legal_actions
        paths = [(*click.cells, click.choice) if click.choice else click.cells for click in clicks if click.cells]
        assert len(set(paths)) == len(paths)
        assert not [path for path in paths for other in paths if other != path and other[: len(path)] == path]
        names = {click.action: click.name for click in clicks}
        assert {position.parse(name): name for name in names.values()} == names
        buttons = {click.name for click in clicks if not click.cells}
        smaller = {name for name in buttons if "/off:" in name}  # one of two dice that bear the same checker off
        pushes = {"up", "down", "left", "right"}
        assert (
            buttons - smaller - pushes <= {"pass", "swap", "roll", "stop"} or position.chances or not game.board.cells
        )


def test_pieces_are_those_of_the_rendered_text(game: Game):
    """Wherever the text shows a board of X and O."""
    for position in positions_of(game.name):
        rows = re.findall(r"^[\d ]*?((?:[XO.] ?)+)$", str(position), re.MULTILINE)
        marks = "".join(rows).replace(" ", "")
        if len(marks) != len(game.board.cells):
            continue
        stones = [piece for piece in position.view.pieces if piece.shape != "dot"]
        drawn = {piece.cell: "XO"[piece.player] for piece in stones if piece.player is not None}
        assert [drawn.get(cell, ".") for cell in range(len(marks))] == list(marks)


def test_symmetries_map_clicks_and_pieces(game: Game):
    """A mirrored position shows every piece where the symmetry of the actions puts its cell."""
    transform = game.plain_rules.transform
    if transform is None:
        return
    _, images = game.symmetries
    for position in positions_of(game.name):
        for symmetry in range(1, len(images)) if not position.chances else ():
            state = position.state.copy()
            with np.errstate(over="ignore"):
                transform(state, symmetry)
            mirrored = Position(game, state, position.to_play, ())
            before, after = (
                {click.action: click.cells for click in reversed(p.view.clicks)} for p in (position, mirrored)
            )
            cell_map: dict[int, int] = {}
            for action, cells in after.items():
                for image, cell in zip(cells, before[int(images[symmetry][action])], strict=True):
                    assert cell_map.setdefault(cell, image) == image
            pieces = [{piece.cell: piece for piece in p.view.pieces} for p in (position, mirrored)]
            assert len(pieces[0]) == len(pieces[1])
            for cell, image in cell_map.items():
                owners = [found[place].player if place in found else None for found, place in zip(
                    pieces, (cell, image), strict=True)]  # fmt: skip
                assert owners[0] == owners[1]


def test_the_last_action_is_marked_where_it_was_played(game: Game):
    for position in positions_of(game.name):
        if not position.actions:
            assert position.view.last == ()
            continue
        before = game.position(position.actions[:-1])
        clicks = [click.cells for click in before.view.clicks if click.action == position.actions[-1]]
        assert position.view.last == clicks[0]


def test_pictures_are_small_and_valid(game: Game):
    for position in positions_of(game.name):
        svg = position.svg()
        assert len(svg.encode()) < 50_000
        assert position._repr_svg_() == svg
        several = "(first|second|third) player (to move|has won)|draw"
        said = several if game.num_players > 1 else "to move|the game is over"
        assert any(re.fullmatch(said, words) for words in texts(svg))
        titles = {element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")}
        assert all(any(str(title).startswith(cell.name) for title in titles) for cell in game.board.cells)


def test_policies_and_values_are_shown_at_every_action_that_has_some(game: Game):
    position = next(position for position in positions_of(game.name) if position.legal_mask.any())
    legal = position.legal_actions
    policy = {action: 1.0 + (action == legal[-1]) for action in legal[-3:]}
    svg = position.svg(policy=policy, values={action: 0.25 for action in legal})
    shown = sum("+0.25" in text for text in texts(svg))
    assert shown == len(policy)
    alone = position.svg(values=dict.fromkeys(legal[:3], 0.25))
    assert sum("+0.25" in text for text in texts(alone)) == len(legal[:3])
    visits = np.zeros(game.num_actions, np.int64)
    visits[legal[0]] = 100
    assert "100%" in " ".join(texts(position.svg(visits)))


# --- boards that are known by heart ---


def played(name: str, text: str) -> Position:
    return kernels_by_name(name).game.position(text)


def clicks_of(position: Position) -> dict[tuple[int, ...], str]:
    return {click.cells: click.name for click in position.view.clicks}


def test_regions_that_one_player_encloses_are_marked():
    stones = [Piece(1, 0), Piece(4, 0), Piece(5, 1)]
    assert {(dot.cell, dot.player, dot.shape) for dot in enclosed(stones, 3, 4)} == {(0, 0, "dot")}
    found = {dot.cell: dot.player for dot in enclosed([*stones, Piece(2, 1), Piece(10, 1)], 3, 4)}
    assert found == {0: 0, 3: 1, 6: 1, 7: 1, 11: 1}, "and not what both touch"
    assert enclosed([], 2, 2) == []


def test_the_eight_images_of_a_square():
    images = ["".join(map(str, cells)) for cells in images_of_square(2).tolist()]
    assert images == ["0123", "0213", "2301", "1302", "1032", "2031", "3210", "3120"]


def test_every_cell_of_a_column_means_the_column():
    position = played("connect4", "4 4 4")
    clicks = clicks_of(position)
    assert len(clicks) == 42 and all(name == str(cell % 7 + 1) for (cell,), name in clicks.items())
    first = next(click for click in position.view.clicks if click.name == "4")
    assert first.cells == (7 * 2 + 3,)  # three stones lie below
    assert position.view.last == (7 * 3 + 3,)
    assert [(piece.cell, piece.player) for piece in position.view.pieces] == [(24, 0), (31, 1), (38, 0)]


@pytest.mark.parametrize(
    ("name", "text", "cells"),
    [
        ("connect4", "1 2 1 2 1 2 1", {14, 21, 28, 35}),
        ("connect4", "4 4 5 5 6 6 7", {38, 39, 40, 41}),
        ("tictactoe", "a1 b1 b2 c1 c3", {0, 4, 8}),
        ("gomoku", "a1 a2 b1 b2 c1 c2 d1 d2 e1", {0, 1, 2, 3, 4}),
        ("hex", "d1 a1 d2 b1 d3 c1 d4 a2 d5 b2 d6 c2 d7", {3, 10, 17, 24, 31, 38, 45}),
        ("hex", "g1 a1 d1 a2 d2 b1 d3 c1 d4 b2 d5 c2 d6 a3 d7", {3, 10, 17, 24, 31, 38, 45}),
    ],
)  # fmt: skip
def test_winning_lines_are_marked(name: str, text: str, cells: set[int]):
    position = played(name, text)
    assert position.terminal and set(position.view.winning) == cells
    assert position.view.outcome == 1 and "has won" in position.svg()


def test_a_pawn_moves_by_two_clicks_seen_from_the_first_player_by_both():
    start = played("breakthrough", "")
    cell_of = {cell.name: number for number, cell in enumerate(start.game.board.cells)}
    assert clicks_of(start)[cell_of["a2"], cell_of["b3"]] == "a2-b3"
    after = start.play(start.parse("a2-b3"))
    assert after.view.last == (cell_of["a2"], cell_of["b3"])
    assert clicks_of(after)[cell_of["c5"], cell_of["c4"]] == "c5-c4"
    owners = {start.game.board.cells[piece.cell].name: piece.player for piece in after.view.pieces}
    assert owners["b3"] == 0 and owners["f6"] == 1 and "a2" not in owners and len(owners) == 24


@pytest.mark.parametrize(
    ("name", "line", "more"),
    [
        ("breakthrough", "a2-a3 a5-a4 b2-b3 b5-b4", "a3xb4 c5-c4"),
        ("connect4", "4444", "4 4"),
        ("hex", "a1 b1", "c1 d1"),
    ],
)
def test_a_position_that_was_set_up_knows_the_actions_since(name: str, line: str, more: str):
    whole = played(name, line)
    position = Position(whole.game, whole.state.copy(), whole.to_play, ())
    assert position.view.last == () and position.is_set_up and position.history == [position]
    for number, word in enumerate(more.split(), 1):
        whole, position = whole.play(whole.parse(word)), position.play(position.parse(word))
        assert position.view.last == whole.view.last != () and position.svg()
        assert position.ply == number and len(position.history) == number + 1 and position.is_set_up
        # actions that do not lead to the position: played from the start, they are not allowed, or lead elsewhere
        wrong = Position(whole.game, whole.state.copy(), whole.to_play, position.actions)
        assert wrong.view.last == () and wrong.svg()


def test_boxes_belong_to_who_completed_them():
    for position in random_positions(kernels_by_name("dots_and_boxes").game):
        owners = [piece.player for piece in position.view.pieces if piece.shape == "fill"]
        counts = [int(position.state[1 + position.to_play]), int(position.state[2 - position.to_play])]
        assert [owners.count(0), owners.count(1)] == counts
    unknown = Position(position.game, position.state.copy(), position.to_play, ())
    assert {piece.player for piece in unknown.view.pieces} == {None}


def test_a_click_takes_an_object_and_all_beside_it():
    position = played("nim", "4-2")
    names = clicks_of(position)
    last_pile = [cell for (cell,), name in names.items() if name.startswith("4-")]
    assert [names[(cell,)] for cell in sorted(last_pile)] == ["4-5", "4-4", "4-3", "4-2", "4-1"]


def test_swaps_and_passes_are_buttons():
    swap = played("hex_swap", "d4")
    assert [click.name for click in swap.view.clicks if not click.cells] == ["swap"]
    assert "swap" in texts(swap.svg()) and "swap +0.50" in texts(swap.svg(values={49: 0.5}))
    passed = next(p for p in random_positions(kernels_by_name("othello6").game, 50) if p.legal_actions == [36])
    assert [click.name for click in passed.view.clicks] == ["pass"]
    after = passed.play(36)
    assert after.view.last == ()


# --- games whose authors describe no board ---


def template_game(tmp_path) -> Game:
    from alphazero.commands.rules import new

    new.main(["my_board_game", "--folder", str(tmp_path)])
    return registry.load(str(tmp_path / "my_board_game.py")).game


def test_a_new_game_has_a_board_for_nothing(tmp_path):
    game = template_game(tmp_path)
    assert [cell.name for cell in game.board.cells[:5]] == ["a1", "b1", "c1", "d1", "a2"]
    assert [label.text for label in game.board.labels] == [*"1234", *"abcd"]
    position = game.position("a1 b2")
    assert {(piece.cell, piece.player) for piece in position.view.pieces} == {(0, 0), (5, 1)}
    assert clicks_of(position)[15,] == "d4" and len(position.view.clicks) == 14
    assert set("1234abcd") <= set(texts(position.svg()))


def test_a_game_without_a_board_is_drawn_as_its_text():
    position = DoubleMove().position("1 2")
    assert position.game.board.cells == ()
    assert [(click.cells, click.name) for click in position.view.clicks] == [((), "1"), ((), "2"), ((), "3")]
    words = " ".join(texts(position.svg())).replace("\u00a0", " ")
    assert "pile 9, first player 1, second player 2" in words


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((-0.5, 1.0, -0.5), "third player has won"),
        ((0.5, 0.5, -1.0), "second and third player share the win"),
        ((0.0, 0.0, 0.0), "draw"),
    ],
)
def test_of_three_players_two_can_share_the_win(shares: tuple[float, ...], said: str):
    """The second player would be to move."""

    class Shared(TicTacMo):
        def returns(state, results):
            results[0], results[1], results[2] = shares

        rules = replace(TicTacMo.rules, returns=returns)

    end = TicTacMo().position("a1 b1 e2 b2 d1 a2 c3")
    svg = Position(Shared(), end.state.copy(), end.to_play, ()).svg()
    assert said in texts(svg)
    assert float(re.search(r'viewBox="\S+ \S+ (\S+)', svg)[1]) > 7 * len(said)


@pytest.mark.parametrize(
    "clicks",
    [{(0,): 9}, {(9,): 0}, {(): 0}, {(0,): 0, (0, 1): 1}, {(0,): 0, (0, "rook"): 1}, {("rook",): 0}, {("rook", 0): 0}],
)
def test_wrong_clicks_are_named(clicks):
    class Broken(type(kernels_by_name("tictactoe").game)):
        def clicks(self, position):
            return clicks

    with pytest.raises(GameError, match="clicks must name cells 0 to 8"):
        Broken().start().svg()


def test_of_actions_with_the_same_clicks_a_word_is_chosen():
    class Choosing(type(kernels_by_name("tictactoe").game)):
        def clicks(self, position):
            paths = {(4, "queen"): 0, (4, "to the left"): 1, (3,): 2}
            return {path: action for path, action in paths.items() if action in position.legal_actions}

    start = Choosing().start()
    clicks = [(click.action, click.cells, click.choice) for click in start.view.clicks]
    assert clicks[:3] == [(0, (4,), "queen"), (1, (4,), "to the left"), (2, (3,), "")]
    assert clicks[3:] == [(action, (), "") for action in range(3, 9)]
    assert start.play(1).view.last == (4,)
    shown = " ".join(texts(start.svg(values={0: 0.25, 1: 0.75, 2: 0.5})))
    assert "+0.75" in shown and "+0.50" in shown and "+0.25" not in shown, "one mark for a cell"


def test_pieces_are_drawn_by_the_paths_of_their_shapes():
    class Chessmen(type(kernels_by_name("tictactoe").game)):
        def pieces(self, position):
            return [Piece(0, 0, "knight"), Piece(4, 1, "crowned", "2"), Piece(8, 1, "dot")]

    svg = Chessmen().start().svg()
    titles = {str(element.text) for element in ElementTree.fromstring(svg).iter(f"{SVG}title")}
    assert {"a1, first knight", "b2, second crowned 2", "c3, second"} <= titles
    assert GLYPHS["knight"] in svg and GLYPHS["crowned"] in svg and GLYPHS["queen"] not in svg
    for data in GLYPHS.values():  # straight lines and curves of absolute places alone, inside of the cell
        assert set(re.sub(r"[-\d ]", "", data)) <= set("MLHVCAZ")
        assert max(abs(int(number)) for number in re.findall(r"-?\d+", data)) <= 92


def test_the_validator_names_a_position_whose_board_is_wrong():
    class Broken(type(kernels_by_name("tictactoe").game)):
        def pieces(self, position):
            return [Piece(9, 0)] if position.ply == 2 else super().pieces(position)

    with pytest.raises(LawBroken, match="`pieces`.* raised IndexError"):
        validate(Broken(), num_games=2)


def test_names_and_drawings_are_escaped():
    class Odd(DoubleMove):
        name = 'a<b>&"c"'

        def render(self, state, to_play):
            return "a \x1b[91mred\x1b[0m \x07 & <b>"

    svg = Odd().start().svg()
    assert 'a<b>&"c": first player to move' in [title.text for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert "a\u00a0red\u00a0\u00a0&\u00a0<b>" in texts(svg)


@pytest.mark.parametrize("numbers", [np.zeros(8), np.zeros((1, 9)), [0.5]])
def test_a_policy_of_the_wrong_shape_is_refused(numbers):
    for given in ({"policy": numbers}, {"values": numbers}):
        with pytest.raises(GameError, match="one number for each of the 9 actions"):
            played("tictactoe", "b2").svg(**given)


# --- games from elsewhere ---


def foreign(name: str) -> Game:
    pytest.importorskip("pyspiel")
    return registry.load(f"openspiel:{name}").game


@pytest.mark.parametrize(
    ("name", "size", "buttons"),
    [
        ("tic_tac_toe", 9, ()),
        ("connect_four", 42, ()),
        ("breakthrough(rows=5,columns=4)", 20, ()),
        ("othello", 64, ("pass",)),
        ("go(board_size=5)", 25, ("B_PASS", "W_PASS")),
        ("hex(board_size=4)", 16, ()),
        ("checkers", 64, ()),
        ("clobber", 30, ()),
        ("lines_of_action", 64, ()),
    ],
)
def test_games_of_openspiel_that_print_a_board_can_be_clicked(name: str, size: int, buttons: tuple[str, ...]):
    game = foreign(name)
    assert len(game.board.cells) == size
    for position in random_positions(game, 1)[:25]:
        view = position.view
        assert {click.name for click in view.clicks if not click.cells} <= set(buttons)
        owners = {piece.cell: piece.player for piece in view.pieces}
        for click in view.clicks:
            if len(click.cells) > 1:
                assert owners[click.cells[0]] == position.to_play, "people move pieces of their own"
            texts(position.svg())


def test_a_game_of_openspiel_shows_its_pieces_where_it_prints_them():
    position = foreign("connect_four").position([3, 3, 0])
    assert {(piece.cell, piece.player) for piece in position.view.pieces} == {(38, 0), (31, 1), (35, 0)}
    assert clicks_of(position)[0,] == clicks_of(position)[28,] == "o0"
    assert len({cell.outline[0][0] % 1 for cell in foreign("hex(board_size=4)").board.cells}) == 2  # hexagons


@pytest.mark.parametrize("name", ["chess", "nine_mens_morris", "y(board_size=4)", "mancala", "dots_and_boxes"])
def test_a_game_of_openspiel_without_rows_of_cells_is_drawn_as_its_text(name: str):
    game = foreign(name)
    assert game.board.cells == ()
    for position in random_positions(game, 1)[:5]:
        assert sorted(click.action for click in position.view.clicks) == position.legal_actions
        words = "".join(texts(position.svg())).replace("\u00a0", " ")
        assert all(line in words for line in str(position).split("\n"))


def test_classes_of_alpha_zero_general_are_drawn_from_their_arrays():
    tictactoe = GeneralGame(general_games.TicTacToeGame(), "tictactoe")
    position = tictactoe.position([4, 0])
    assert {(piece.cell, piece.player) for piece in position.view.pieces} == {(4, 0), (0, 1)}
    assert [click.cells for click in position.view.clicks] == [(cell,) for cell in (1, 2, 3, 5, 6, 7, 8)]
    columns = GeneralGame(general_games.Columns(), "columns").position([3])
    first = next(click for click in columns.view.clicks if click.action == 3)
    assert first.cells == (13,) and len(columns.view.clicks) == 100  # its stones fall upwards
    assert GeneralGame(general_games.MoveAgainGame(), "again").start().view.pieces == ()
    assert GeneralGame(general_games.Planes(True), "planes").board.cells == ()


def test_numbers_other_than_one_are_written_on_the_stones():
    class Kings(general_games.TicTacToeGame):
        def getInitBoard(self):
            return np.array([[0, 2, 0], [-3, 0, 1], [0, 0, 0]])

    pieces = GeneralGame(Kings(), "kings").start().view.pieces
    assert {(piece.cell, piece.player, piece.text) for piece in pieces} == {(1, 0, "2"), (3, 1, "3"), (5, 0, "")}


def counts(state, planes):
    """Of seeds, as in games with pits."""
    planes[0, 0, 0], planes[1, 0, 0] = 0.4, 0.2


def two_in_a_cell(state, planes):
    planes[:2, 1, 1] = 1.0


@pytest.mark.parametrize("observe", [counts, two_in_a_cell])
def test_a_game_whose_planes_hold_no_stones_shows_its_text(observe):
    """Its page once was an empty grid."""

    class Pits(TicTacToe):
        rules = replace(TicTacToe.rules, observe=observe)

        @property
        def board(self):
            return Game.board.func(self)  # the default

    class Drawn(Pits):
        def pieces(self, position):
            return [Piece(4, 0, text="7")]

    assert Pits().board.cells == () and Pits().start().view.pieces == () and Pits().start().view.text
    assert len(Drawn().board.cells) == 9 and [piece.text for piece in Drawn().start().view.pieces] == ["7"]


def test_the_marks_of_eight_players_differ_without_their_colours():
    picture = _Picture(Board(cells=grid_cells(1, 1, ["a1"])))
    marks = [[(round(size, 3), cap) for size, _, cap in picture.engraving(player, 0.45)] for player in range(8)]
    assert len({str(each) for each in marks}) == 8 and marks[2] == []
    assert picture.engraving(None, 0.45) == []
    mo = registry.load("tictacmo").game.position("a1 b1 e2")
    assert [fill in mo.svg() for fill in mo.game.board.colors.of_players] == [True, True, True, *[False] * 5]


def test_the_winners_colour_stands_below_the_board():
    game = registry.load("tictacmo").game
    won = game.position("a2 b1 e1 a3 b3 e2 c2 d2 e3")
    third = game.board.colors.others[0]
    assert won.winners == (2,) and "third player has won" in won.svg()
    assert won.svg().rpartition("third player has won")[0].rpartition("<path")[2].count(third) == 1
