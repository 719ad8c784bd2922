"""A human player at the terminal, who types moves in the game's notation and may ask for help."""

from __future__ import annotations

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from textwrap import indent

from alphazero.catalogue import registry
from alphazero.errors import InputError, count_of
from alphazero.game import Game, Position
from alphazero.game.reading.record_files import write_games
from alphazero.game.record import GameRecord, lone_seat, words_of
from alphazero.game.rules import points_so_far
from alphazero.game.spec import Oracle
from alphazero.invocation import command_line
from alphazero.players.net_players import SearchPlayer
from alphazero.players.player import FollowingPlayer, Player, TakeBack
from alphazero.storage.files import check_output_file, may_write

COMMANDS = {
    "undo": "take back your last move and all moves since",
    "hint": "the best moves by a search: visits, value from -1 to 1 or in points, the moves that may follow",
    "eval": "the exact result of every move, by the game's solver",
    "save": "`save FILE` writes the game so far, to step through by `{replay}`",
    "quit": "leave the match",
    "help": "this list",
}
LINES, MOVES = 3, 8
"""Moves that a hint shows, and how far it follows them."""


class HumanLeft(Exception):
    """The human has left the match; the message says how."""


class HumanPlayer(FollowingPlayer):
    """Asks until it gets a legal move; `quit` or the end of the input raises HumanLeft."""

    name = "human"

    def __init__(self, game: Game, adviser: SearchPlayer, oracle: Oracle | None, seed: int):
        super().__init__(game)
        self._adviser, self._oracle, self._seed, self._opponent = adviser, oracle, seed, "?"
        self.loaded_as = game.name
        """The name by which the game is loaded, for saved games."""

    def meet(self, opponent: Player) -> None:
        self._opponent = opponent.name
        if isinstance(opponent, SearchPlayer):
            self._adviser = opponent

    def choose(self, position: Position, game: int) -> int:
        self._show(position)
        if sys.stdin is not None and sys.stdin.isatty():
            with contextlib.suppress(ImportError):  # arrow keys move in the line, where Python was built with it
                import readline  # noqa: F401
        while True:
            try:
                text = input("You: " if self._game.num_players == 1 else f"Player {position.to_play + 1}: ").strip()
            except (EOFError, RuntimeError, NotImplementedError):  # also no input at all, as in a notebook's test
                raise HumanLeft(
                    "a human types moves at a terminal or in a notebook, and there is no more input"
                ) from None
            word, _, rest = text.partition(" ")
            is_move = text in (position.format(action) for action in position.legal_actions)  # one may be called undo
            try:
                if is_move or word.lower() not in COMMANDS:
                    return position.parse(text)
                getattr(self, f"_{word.lower()}")(position, game, rest.strip())
            except InputError as error:
                print(error)

    def _show(self, position: Position) -> None:
        """Prints the board with the last move marked, and the moves since one's own last move."""
        history, start = position.history, self._game.start()
        own = [ply for ply, earlier in enumerate(history[:-1]) if is_choice(earlier, position.to_play)]
        since = own[-1] + 1 if own else 0
        if self._game.num_players > 2 and not own:
            print(
                f"\nYou are player {position.to_play + 1} of {self._game.num_players}; the others are {self._opponent}."
            )
        if since < position.ply:
            print("", *told(history[since:], position.actions[since:]), sep="\n")
        shown = indent(str(position), " ")
        # in a list of numbers, or after dice, marks would only be in the way
        if type(self._game).render is not Game.render and not self._game.num_outcomes:
            drawn = Counter("".join(str(start).split())).most_common(1)  # most of the start is the empty cell
            shown = mark_changes(
                indent(str(history[max(0, position.ply - 1)]), " "), shown, drawn[0][0] if drawn else ""
            )
        legal = ", ".join(position.format(action) for action in position.legal_actions)
        print(f"\n{shown}\n\nYour moves: {legal}, or help")

    def _undo(self, position: Position, game: int, rest: str) -> None:
        for ply, earlier in reversed(list(enumerate(position.history[:-1]))):
            if is_choice(earlier, position.to_play):
                raise TakeBack(ply)
        print("There is no move of yours to take back.")

    def _hint(self, position: Position, game: int, rest: str) -> None:
        analysis = self._adviser.analysis()
        lines = analysis.run(position)
        print(f"{self._adviser.name}, {count_of(int(sum(line.visits for line in lines)), 'simulation')}:")
        if self._game.num_players > 2:
            values = (f"player {number} {value:+.2f}" for number, value in enumerate(analysis.node().values, 1))
            print(f"  values: {', '.join(values)}")
        for line in lines[:LINES]:
            moves = words_of(position, line.moves[:MOVES])
            print(f"  {moves[0]:<6} {line.visits:>6} visits  {expected(position, line.value)}  {' '.join(moves)}")

    def _eval(self, position: Position, game: int, rest: str) -> None:
        if self._oracle is None:
            print(f"{self._game.name} has no solver; type hint to ask a search.")
        elif found := self._oracle.results(position):
            for action, result in found.items():
                print(f"  {position.format(action):<6} {self._oracle.words(result)}")
        else:
            print(f"{self._oracle.too_far(position)}; type hint to ask a search.")

    def _save(self, position: Position, game: int, rest: str) -> None:
        if not rest:
            print("save takes the name of a new file, as in save game.jsonl")
            return
        file = Path(rest.strip("\"'"))  # as a shell takes a name
        check_output_file("save", file)
        if not may_write(file):
            print(f"{file} exists already, and is left as it is; save takes the name of a new file")
            return
        alone = position.to_play == lone_seat(self._game, game)
        names = (self.name, self._opponent) if alone else (self._opponent, self.name)
        words = tuple(words_of(self._game.start(), position.actions))
        write_games(file, self._game, [GameRecord(self.loaded_as, game, names, (), words, "*", (0.0, 0.0), self._seed)])
        chosen = [] if self.loaded_as in registry.NAMES else ["--game", self.loaded_as]
        print(f"The game so far is in {file}; {command_line('replay', file, 0, *chosen)} steps through it.")

    def _quit(self, position: Position, game: int, rest: str) -> None:
        raise HumanLeft("the human has left the match, so it has no result")

    def _help(self, position: Position, game: int, rest: str) -> None:
        print("Type a move as it is listed above, or one of these:")
        for command, meaning in COMMANDS.items():
            print(f"  {command:<10} {meaning.format(replay=command_line('replay', 'FILE', 0))}")


def is_choice(position: Position, player: int) -> bool:
    """The player chose a move there; no die was due."""
    return position.to_play == player and not position.chances


def expected(position: Position, value: float) -> str:
    """A value for the player to move in words: in a game with a score as points, those so far included."""
    score, word = position.game.score, position.game.points_word
    if score is None:
        return f"value {value:+.2f}"
    points = score.points(value) + float(points_so_far(position.state, word))
    return f"{points:+,.2f} {score.unit}" if word is None else f"{points:,.0f} {score.unit}"


def told(history: Sequence[Position], actions: Sequence[int]) -> list[str]:
    """A line of the dice before any move, then a line for each player in turn: the moves, each with its dice."""
    lines, dice = list[str](), list[str]()
    for player, steps in groupby(zip(history, actions, strict=False), lambda step: step[0].to_play):
        moves = list[str]()
        for before, action in steps:
            word = before.format(action)
            if not before.chances:
                moves.append(word)
            elif moves:
                moves[-1] += f" ({word})"
            elif lines:  # where players alternate, the die comes when the next one is to move
                lines[-1] += f" ({word})"
            else:
                dice.append(word)
        if moves:
            lines.append(f"Player {player + 1} plays {', '.join(moves)}")
    shown = "Dice" if all(word[0].isdigit() for word in dice) else "New"
    return [f"{shown}: {', '.join(dice)}"] * bool(dice) + lines


def mark_changes(before: str, after: str, empty: str) -> str:
    """The drawing `after` with brackets, where there is room, around the cells that were `empty` in `before`, or else
    around all that has changed; as it is, if the drawings have different shapes."""
    if [len(line) for line in before.split("\n")] != [len(line) for line in after.split("\n")]:
        return after
    changed = [i for i, (was, now) in enumerate(zip(before, after, strict=True)) if was != now and now != " "]
    marked = set([i for i in changed if before[i] == empty] or changed)
    runs = list(re.finditer("x+", "".join("x" if i in marked else "." for i in range(len(after)))))
    for start, end in reversed([run.span() for run in runs]):
        if after[start - 1 : start] == " " and after[end : end + 1] in ("", " ", "\n"):
            after = f"{after[: start - 1]}[{after[start:end]}]{after[end:].removeprefix(' ')}"
    return after
