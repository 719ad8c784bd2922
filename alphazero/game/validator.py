"""Plays random games by a game's rules and checks the laws of `Game` at every position.

The rules run as plain Python first, where numpy finds each index that is out of range; only rules that pass are
compiled, and compared with it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from alphazero.errors import LawBroken, count_of, quote
from alphazero.game.game import Game, Position
from alphazero.game.laws.compiled import CHECKED, begin_compiling, compare
from alphazero.game.laws.laws import Laws, check_declaration
from alphazero.game.laws.questions import Facts
from alphazero.game.python_game import PythonGame
from alphazero.game.rules import by_player, shown_words
from alphazero.settings import check_range

SLOW = 300.0
"""Plies a second, as a search plays them, below which a game is called slow: even a small search takes seconds then."""
SECONDS, SECONDS_EACH = 30.0, 10.0
"""No more games are begun after so long; and no more checks of a kind after the games."""
BOARDS, NOTED = 10, 10
"""Positions of the first game of which a picture is drawn, and games whose notation is read, at most."""
FOLLOWED = 5
"""Games that are played again in each of their mirror images."""
FEW_WINS = 8
"""Won games after which the last mover should have won one: if every second is theirs, no win has probability 1/256."""


@dataclass
class Findings:
    """Facts about the games that were played."""

    num_positions: int = 0
    lengths: list[int] = field(default_factory=list)
    """Plies of each game."""
    branching: list[int] = field(default_factory=list)
    """Legal actions of each position that is not over."""
    points: list[float] = field(default_factory=list)
    """The points of each game, in a game for one; other games have `outcomes`."""
    outcomes: Counter[int] = field(default_factory=Counter)
    """Games by their outcome for the first player; in a game for more than two by the number of who won alone, from
    1 on, or 0."""
    endings: set[tuple[float, ...]] = field(default_factory=set)
    """The different results of all players, the first player's first, in games for two or more."""
    last_mover_won: list[bool] = field(default_factory=list)
    """For every won game: the player who made its last ply has won."""
    plies_per_second: float = 0.0
    """Plies a second of the plain Python rules alone, without the checks."""
    compiled_per_second: float | None = None
    """Positions described, observed and played a second on one core; None where numba cannot compile the rules."""
    warnings: list[str] = field(default_factory=list)
    """Oddities that break no law, but are probably mistakes."""
    example: str = ""
    """The first game: its actions and how it ended."""
    cut: list[int] = field(default_factory=list)
    """Numbers of the games, from 1 on, that ended only because they had lasted `max_plies`."""

    @property
    def num_games(self) -> int:
        """Games that were played."""
        return len(self.lengths)

    def __repr__(self) -> str:
        warnings = f", {count_of(len(self.warnings), 'warning')}" if self.warnings else ""
        games, positions = count_of(self.num_games, "random game"), count_of(self.num_positions, "position")
        return f"<Findings of {games}: {positions}, all laws kept{warnings}>"


def validate(game: Game, num_games: int = 100, seed: int = 0) -> Findings:
    """Plays `num_games` random games; raises LawBroken, which names the law and shows the position."""
    check_range("the number of games", num_games, 1)
    check = Check(game, seed=seed)
    findings, lines = check.findings, list[list[int]]()
    check_declaration(check)
    with contextlib.ExitStack() as beside:
        with check.watched():
            while findings.num_games < num_games and (time.monotonic() < check.deadline or findings.num_games < 2):
                check.play_one()
                lines.append(check.line)
                if findings.num_games == 1 and game.compiled:
                    check.permutations()
                    compile_rest = check.call("compiled rules", lambda: begin_compiling(game, beside))
            check.line = []
            check.asked_again()
            check.all_move()
            check.mirrored(lines[:FOLLOWED])
            check.board(lines[0])
            check.line = []
            check.hidden()
        if game.compiled:
            check.call("compiled rules", compile_rest)
            findings.compiled_per_second = compare(check)
            if findings.compiled_per_second is None:
                words = "numba cannot compile the rules; they run as plain Python, slower (see above)"
                findings.warnings.append(words)
    _advise(game, findings)
    return findings


class Check(Laws):
    """Whole games, and what their symmetries make of them."""

    def __init__(self, game: Game, seconds: float | None = None, seed: int = 0):
        """`seconds`: the longest time for the games, and for each kind of checks after them; None = the usual ones."""
        super().__init__(game)
        self.findings, self.rng = Findings(), np.random.default_rng(seed)
        self.seconds = SECONDS_EACH if seconds is None else seconds
        self.deadline = time.monotonic() + (SECONDS if seconds is None else seconds)
        """The time from which slow checks that are not essential are skipped."""

    def play_one(self) -> None:
        findings, begin, before, plies = self.findings, self.busy, -1, 0
        noted = findings.num_games < NOTED
        for state, player, facts in self.random_game(self.rng):
            if not facts.is_terminal:
                if noted and time.monotonic() < self.deadline:
                    self.notation(state, player, np.flatnonzero(facts.legal).tolist())
                findings.branching.append(int(facts.legal.sum()))
                before, plies = player, plies + 1
        self.notation(state, player, [])
        if noted:
            words = (written := self.write(self.line)).split()
            read = self.call("split_moves", lambda: list(self.game.split_moves(written)))
            self.must(read == words, f"`split_moves` must find the words of `format_action` in {quote(written)}")
        value, ended = facts.terminal_value[0], "draw"
        if self.game.num_players == 1:
            findings.points.append(Position(self.game, state.copy(), player, ()).points)
            ended = f"{findings.points[-1]:g} {self.game.score.unit if self.game.score else 'points'}"
        elif self.game.value_shape:
            best = np.flatnonzero(np.array(facts.terminal_value) == max(facts.terminal_value)).tolist()
            winners = [(player + place) % self.game.num_players for place in best]
            findings.last_mover_won += [winners == [before]] * (len(winners) == 1)
            ended = f"won: player {', '.join(str(winner + 1) for winner in winners)}"
            findings.outcomes[winners[0] + 1 if len(winners) == 1 else 0] += 1
        elif value:
            winner = player if value > 0 else 1 - player
            findings.last_mover_won.append(winner == before)
            ended = f"player {winner + 1} has won"
        if self.game.num_players > 1:
            findings.endings.add(by_player(np.array(facts.terminal_value), player, self.game.num_players))
        drawn = f"{self.write(self.line)}\n{self.game.render(state.copy(), player)}\n{ended}"
        findings.example = findings.example or drawn
        if self.game.num_players == 2:
            findings.outcomes[int(np.sign(value if player == 0 else -value))] += 1
        findings.lengths.append(plies)
        if isinstance(self.game, PythonGame) and self.game.cut(self.game.object_of(state)):
            findings.cut.append(findings.num_games)
        findings.num_positions = len(self.visited)
        findings.plies_per_second = max(findings.plies_per_second, plies / max(1e-9, self.busy - begin))

    def notation(self, state: np.ndarray, player: int, actions: list[int]) -> None:
        """The position can be drawn, and every legal action written and read."""
        drawn = self.call("render", lambda: self.game.render(state.copy(), player), state, player)
        self.must(isinstance(drawn, str), f"`render` must give a text, not {quote(drawn, 60)}", state, player)
        write, read = self.game.format_action, self.game.parse_action
        texts: dict[str, int] = {}
        for action in actions:
            text = self.call("format_action", functools.partial(write, action, state.copy()), state, player)
            self.one_word("format_action", text, state, player)
            found = self.call("parse_action", functools.partial(read, text, state.copy()), state, player)
            law = f"`format_action` and `parse_action` must be inverse to each other; {quote(text)} is {action} and "
            self.must(found == action and text not in texts, f"{law}{texts.get(text, found)}", state, player)
            texts[text] = action

    def some(self) -> Iterator[tuple[np.ndarray, int, Facts]]:
        """Some of the visited positions, while there is time."""
        deadline = time.monotonic() + self.seconds
        rows = self.rng.permutation(len(self.visited))[:CHECKED]
        yield from (self.visited[row] for row in itertools.takewhile(lambda _: time.monotonic() <= deadline, rows))

    def asked_again(self) -> None:
        """The rules say the same of some of the positions once more, after all those that came in between.

        Positions that are Python objects are made anew, so that an object which was changed is found.
        """
        if isinstance(self.game, PythonGame):
            self.game.forget()
        for state, player, first in self.some():
            changed = first.difference(self.facts(state, player).kept())
            law = f"the rules must say the same of a position whenever they are asked, but `{changed}` changed: does a "
            law += "rule draw lots, keep something outside of the state, or change an earlier position?"
            self.must(not changed, law, state, player)

    def mirrored(self, lines: list[list[int]]) -> None:
        """The images of some of the visited positions, or of games where no rule makes images, are like them."""
        cells, actions = self.permutations()
        if self.rules.transform is not None:
            return self.transforms(cells, actions)
        kept, deadline = [0], time.monotonic() + self.seconds
        if not self.game.num_outcomes:  # an image of the dice would have to be found, too
            facts = self.facts(*self.start())
            kept = [s for s in range(len(cells)) if not facts.image(cells[s], actions[s]).difference(facts)]
        if len(kept) < len(cells) and self.game.compiled:
            what = "of a game with dice" if self.game.num_outcomes else "that change the start position"
            told = f"symmetries {what} could not be checked; write `transform`"
            self.findings.warnings.append(told)
        for number, (line, symmetry) in enumerate(itertools.product(lines, kept[1:])):
            if number and time.monotonic() > deadline:
                if number < len(kept) - 1:
                    self.findings.warnings.append("there was no time to check all symmetries: the rules are slow")
                return
            self._follow(line, symmetry, cells[symmetry], actions[symmetry])

    def transforms(self, cells: np.ndarray, actions: np.ndarray) -> None:
        """The images that `transform` makes of some of the positions, and of the positions after one action.

        An image has no history, and neither has the position here.
        """
        shown = shown_words(self.game)
        for state, player, _ in self.some():
            state, other = state.copy(), state
            state[shown:] = 0
            facts = self.facts(state, player)
            for symmetry in range(len(cells)):
                image, with_history, law = state.copy(), other.copy(), f"`transform` by symmetry {symmetry} must"
                self.ask("transform", image, player, symmetry)
                self.ask("transform", with_history, player, symmetry)
                same = np.array_equal(image[:shown], with_history[:shown])
                self.must(same, f"{law} not read the last `history_words` of a state", state, player)
                wrong = facts.image(cells[symmetry], actions[symmetry]).difference(self.facts(image, player))
                self.must(not wrong, f"{law} permute what `{wrong}` says as `symmetries` does", state, player)
                if not facts.is_terminal:
                    action = int(self.rng.choice(np.flatnonzero(facts.legal)))
                    child = self.play(state, player, action)
                    due = self.spread(child, player, symmetry)
                    self.ask("transform", child, player, symmetry)
                    self.ask("step", image, player, actions[symmetry].tolist().index(action))
                    law += " go with `step`, before and after which it must give the same words: does it forget one?"
                    self.must(np.array_equal(image[:shown], child[:shown]), law, state, player)
                    law = (
                        f"`transform` by symmetry {symmetry} must keep what dice bring: each position that can come of "
                    )
                    law += "the image is the image of one that can come, and as likely"
                    found = self.spread(child, player, 0)
                    same = due.keys() == found.keys() and np.allclose(list(due.values()), [found[key] for key in due])
                    self.must(same, law, state, player)

    def spread(self, state: np.ndarray, player: int, symmetry: int) -> dict[bytes, float]:
        """The images of the positions that the die leads to which is due, and their probabilities."""
        found = dict[bytes, float]()
        for outcome, probability in enumerate(self.dice(state, player)):
            after = state.copy()
            self.ask("settle", after, player, outcome)
            self.ask("transform", after, player, symmetry)
            key = after[: shown_words(self.game)].tobytes()
            found[key] = found.get(key, 0.0) + probability
        return found

    def _follow(self, line: list[int], symmetry: int, cells: np.ndarray, actions: np.ndarray) -> None:
        """Plays `line` and its image from the start, and compares after every ply."""
        (state, player), (image, mover), to_image = self.start(), self.start(), np.argsort(actions)
        for ply, action in enumerate(line, 1):
            self.ask("step", state, player, action)
            self.ask("step", image, mover, int(to_image[action]))
            player, mover = (self.mover(at, self.game.following(who)) for at, who in ((state, player), (image, mover)))
            if self.facts(state, player).image(cells, actions).difference(self.facts(image, mover)):
                self.line = line[:ply]
                drawing = f"{self.draw(state, player)}\nbut by `symmetries` its mirror image is\n"
                self.line = []
                law = f"{self.game.name}: symmetry {symmetry} must turn a game into a game that goes just like it"
                raise LawBroken(law, drawing + self.draw(image, mover))

    def hidden(self) -> None:
        """Warns of two positions that the network cannot tell apart, though their legal actions or results differ.

        Planes need not show that a game is over, as by two passes, nor a draw by repetition or by the number of plies.
        """
        firsts: dict[tuple[bytes, bool], tuple[np.ndarray, int, Facts]] = {}
        for state, player, facts in self.visited:
            if facts.is_terminal and not np.any(facts.terminal_value):
                continue
            other = firsts.setdefault((facts.observe, facts.is_terminal), (state, player, facts))
            if facts._replace(to_play=0).difference(other[2]._replace(to_play=0)):
                what = "results" if facts.is_terminal else "legal actions"
                return self.findings.warnings.append(
                    f"a position looks to the network like another one with other {what}. Does `observe` show all that "
                    f"they depend on, such as who moves?\n{self.draw(*other[:2])}\nand\n{self.draw(state, player)}"
                )

    def board(self, line: list[int]) -> None:
        """The positions of a game, or some of them in a long one, can be drawn, and clicks lead to legal actions."""
        for ply in sorted(set(np.linspace(0, len(line), BOARDS, dtype=int).tolist())):
            self.line = line[:ply]
            position = self.call("position", lambda: self.game.position(self.line))
            self.call("board`, `pieces`, `clicks` or `winning_cells", position.svg, position.state, position.to_play)


# --- warnings ---


def _advise(game: Game, findings: Findings) -> None:
    won = findings.last_mover_won
    if findings.cut:
        counted = " and counted as a draw" if game.num_players == 2 else ""
        findings.warnings.append(
            f"cut after {count_of(game.max_plies, 'ply')}{counted}, though by the rules of the game it goes on: "
            f"random game {', '.join(map(str, findings.cut))} of {findings.num_games}"
        )
    if len(won) >= FEW_WINS and not any(won):
        result = "does `returns` begin with" if game.value_shape else "does `terminal_value` speak for"
        findings.warnings.append(
            f"in none of {len(won)} won games had the winner made the last ply. That is right where whoever moves last "
            f"loses; else, {result} the player to move?"
        )
    if (speed := findings.compiled_per_second or findings.plies_per_second) < SLOW:
        findings.warnings.append(f"the rules are slow: {speed:.0f} plies a second; a search needs thousands")
    if len(findings.endings) == 1 and findings.num_games >= 20:
        findings.warnings.append(
            f"all {findings.num_games} random games ended alike: there may be nothing to learn. Is each position as "
            "whoever moves next sees it, own and opponent's pieces exchanged?"
        )
