"""The engine behind the page: every question of `message` that can be asked, and its answer.

Quick questions are answered by one group of fields; searches by a generator of several. It knows no browser.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from alphazero._version import __version__
from alphazero.catalogue import registry
from alphazero.errors import InputError, Terminated, quote
from alphazero.game.kernels import kernels_of
from alphazero.game.reading.record_files import FORMATS
from alphazero.game.record import line_of, parse_record
from alphazero.search.analysis import Analysis
from alphazero.web.message import BadMessage, Question
from alphazero.web.searches import Grown, Stop, Trees, choose, policy_of, review
from alphazero.web.tables import Stage, Table, is_game, title_of

Answer = dict[str, Any]
OF_TABLE: dict[str, Callable[[Table, Question], Answer]] = {
    "game": lambda table, _: table.fields(),
    "position": lambda table, question: table.position_fields(table.position(question)),
    "roll": lambda table, question: {"actions": list(table.rolled(table.position(question), question.seed).actions)},
    "oracle": lambda table, question: {"results": table.results(table.position(question))},
    "record": lambda table, question: {"text": table.record_text(question)},
}
OTHERS = ("welcome", "policy", "tree", "load")
WATCHED = ("runs", "run", "run_games", "tournaments", "tournament", "tournament_game")
SEARCHES = ("move", "analyse", "review")
MOST_EDGES = 40
"""Actions at a node of the tree that a page shows, the most visited."""


class Engine:
    """Answers the questions of all viewers; a viewer is any object that stays the same."""

    def __init__(self, stage: Stage):
        self.stage, self.trees = stage, Trees()
        self._lock = threading.RLock()
        self._tables: dict[str, Table] = {}
        self.table_named(stage.name)  # mistakes in the names of contestants are told at once
        self.quick: dict[str, Callable[..., Answer]] = {name: getattr(self, f"_{name}") for name in OTHERS}
        self.quick |= dict.fromkeys(OF_TABLE, self._of_table) | dict.fromkeys(WATCHED, self._watch)
        """The answers to questions that take no search, by the name of the question: of a viewer and a `Question`."""
        self.searches = {name: getattr(self, f"_{name}") for name in SEARCHES}
        """The answers of searches, one after another: of a viewer, a `Question` and a `Stop`."""

    def warm(self) -> None:
        """Loads and compiles all that the first move and the first analysis of the page's game need."""
        table = self.table_named(self.stage.name)
        # whoever asks is told; Ctrl-C, which compiling passes on, would show its traceback
        with contextlib.suppress(Exception, KeyboardInterrupt, Terminated):
            seat, start = table.seats()[0], table.rolled(table.game.start(), 0)
            choose(seat, seat.slider.start if seat.slider else 0, None, start, 0, Stop())
            if seat.searches:
                list(Grown(seat, None, table.game).grow(start, 32, Stop()))
            table.results(start)

    def table_named(self, name: str) -> Table:
        """The game of that name: the page's own, or one that comes with the framework. Raises UnknownName."""
        stage = self.stage
        if name not in registry.NAMES and is_game(name, stage.name, stage.loaded.game):
            name = stage.name
        if name != stage.name and name not in registry.NAMES:  # other names would load files
            raise BadMessage(f"this page has no game {quote(name)}; choose one from the list")
        with self._lock:
            if name not in self._tables:
                if name != stage.name:
                    stage = replace(stage, name=name, loaded=registry.load(name), given=())
                self._tables[name] = Table(stage)
            return self._tables[name]

    # --- quick questions ---

    def _welcome(self, viewer: object, question: Question) -> Answer:
        stage, game = self.stage, self.stage.loaded.game
        names = [(stage.name, game.name), *((name, name) for name in registry.NAMES if name != game.name)]
        return {
            "version": __version__, "games": [{"name": name, "title": title_of(known)} for name, known in names],
            "game": stage.name, "watches": stage.runs is not None,
        }  # fmt: skip

    def _of_table(self, viewer: object, question: Question) -> Answer:
        return OF_TABLE[question.ask](self.table_named(question.game), question)

    def _policy(self, viewer: object, question: Question) -> Answer:
        table = self.table_named(question.game)
        seat, _, generation = table.seat(question)
        return policy_of(seat, generation, table.position(question))

    def _tree(self, viewer: object, question: Question) -> Answer:
        tree = self.trees.get((viewer, question.side))
        if tree is None or (position := tree.position) is None:
            raise InputError("there is no search to look into yet: start the analysis")
        node = tree.look(question.path)
        for action in question.path:
            position = position.play(action)
        fields = asdict(replace(node, edges=node.edges[:MOST_EDGES]))
        for edge in fields["edges"]:
            edge["word"] = position.format(edge["action"])
        return {**fields, "path": question.path, "actions": position.actions, "mover": position.to_play}

    def _load(self, viewer: object, question: Question) -> Answer:
        text = question.text.encode(errors="replace")
        if kind := FORMATS.get(question.name):  # a file of another program; the page chooses one of its games
            return {"lines": [line_of(record) for record in kind.read(text)]}
        record = parse_record(text, "the file")
        table = self.table_named(self.stage.name if record.game == self.stage.loaded.game.name else record.game)
        return table.record_fields(record)

    def _watch(self, viewer: object, question: Question) -> Answer:
        return getattr(self._watched, question.ask)(question)

    @cached_property
    def _watched(self) -> Any:
        """Runs and tournaments, when somebody looks: the module imports scipy."""
        from alphazero.web.watch import Watched

        return Watched(self.stage, self.table_named)

    # --- searches ---

    def _move(self, viewer: object, question: Question, stop: Stop) -> Iterator[Answer]:
        table = self.table_named(question.game)
        seat, step, generation = table.seat(question)
        yield choose(seat, step, generation, table.position(question), question.seed, stop)

    def _analyse(self, viewer: object, question: Question, stop: Stop) -> Iterator[Answer]:
        table = self.table_named(question.game)
        seat, _, generation = table.seat(question)
        position, tree = table.position(question), self.trees.get((viewer, question.side))
        if tree is None or tree.key != (table.game.name, seat.id, seat.net(generation)) or question.fresh:
            tree = Grown(seat, generation, table.game)
        if stop.is_set():
            return
        self.trees.put(viewer, question.side, tree)
        yield from tree.grow(position, question.limit, stop)

    def _review(self, viewer: object, question: Question, stop: Stop) -> Iterator[Answer]:
        table = self.table_named(question.game)
        analysis = None
        if question.player:
            seat, _, generation = table.seat(question)
            evaluate, learned = seat.evaluate(generation)
            config = replace(learned, num_simulations=question.simulations)
            analysis = Analysis(kernels_of(table.game), config, evaluate)
        yield from review(table.position(question), analysis, question.simulations, table.results, stop)
