"""The contestants that the page offers for one game, each by an id.

The page names a contestant by its id and by one number: simulations or a depth. No text of the page ever becomes a
contestant's text, so programs and Python functions play only if they were named where the page was started.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, Stopped
from alphazero.game.kernels import kernels_of
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestants import (
    PLAY,
    Contestant,
    ContestantText,
    check_net,
    checkpoint_of,
    find_checkpoint,
    find_net,
    make_player,
    search_of,
    text_of,
)
from alphazero.players.player import Player
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, SearchConfig
from alphazero.search.rollouts import Playouts
from alphazero.storage.manifest import generations_of
from alphazero.web.message import Question

SIMULATIONS = (0, 25, 100, 400, 1600)
"""The slider of a net whose strength was not measured."""
PLAYOUTS = (25, 100, 400, 1600, 6400)
DEPTHS = (1, 2, 3, 4, 5, 6)
USUAL = 100
"""Simulations, if the slider has them, before anybody moves it."""
WAIT = 0.1
"""Seconds after which whoever waits for another search looks whether it was cancelled."""
CACHE_SIZE = 1 << 15
"""Answers of a network that each search remembers."""
T = TypeVar("T")


def kept(read: Callable[[Path], T], most: int, name: str = "") -> Callable[[Path], T]:
    """`read`, which reads a file, or the file of that name in a folder, once for each time that it changes.

    The contents of at most so many files stay in memory. One file is read at a time.
    """
    found: dict[Path, tuple[object, T]] = {}
    lock = threading.Lock()

    def get(path: Path) -> T:
        with lock:
            stamp = None  # before it is read: a change meanwhile is seen by the next call
            with contextlib.suppress(OSError):
                stat = os.stat(path / name)
                stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
            content = found.pop(path, None)
            found[path] = content if content and content[0] == stamp else (stamp, read(path))
            if len(found) > most:
                del found[next(iter(found))]
            return found[path][1]

    return get


class Stop(threading.Event):
    """Asks a search to end: its question is forgotten, and the player interrupted that thinks about it."""

    def __init__(self, question: Question | None = None) -> None:
        super().__init__()
        self.question = question
        self._interrupt: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def set(self) -> None:
        with self._lock:
            super().set()
            self.question = None
            if self._interrupt:
                self._interrupt()

    @contextlib.contextmanager
    def calling(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """The function is called inside when the stop is set, or at once if it is; afterwards no more."""
        with self._lock:
            self._interrupt = interrupt
            if self.is_set():
                interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None

    @contextlib.contextmanager
    def holding(self, lock: threading.Lock) -> Iterator[None]:
        """The lock is held inside; raises Stopped if the stop is set before."""
        while not lock.acquire(timeout=WAIT):
            if self.is_set():
                raise Stopped
        try:
            if self.is_set():
                raise Stopped
            yield
        finally:
            lock.release()


Nets = Callable[[Path], NeuralNet]
"""The nets of one game, by the paths of their files."""


@dataclass(frozen=True)
class Slider:
    """The number that a contestant takes."""

    unit: str
    """`simulations` or `depth`."""
    steps: tuple[int, ...]
    start: int
    measured: Mapping[int, str] = field(default_factory=dict)
    """The strength that was measured at a step, in words."""

    def as_fields(self) -> dict[str, Any]:
        """The slider for a message."""
        return {**vars(self), "measured": [self.measured.get(step, "") for step in self.steps]}


@dataclass(eq=False)
class Seat:
    """One contestant of the page: a net, a player that is kept, or what the command line would open by a text."""

    id: str
    title: str
    loaded: LoadedGame
    note: str = ""
    slider: Slider | None = None
    text: str = ""
    """`{}` in it stands for the slider's number."""
    net: Callable[[int | None], NeuralNet | None] = lambda generation: None
    """From a generation, where there are some, to the network that it asks now; None means the best of a run."""
    searches: bool = False
    """`evaluate` gives the evaluations of a search, so the contestant can analyse."""
    run: Path | None = None
    make: Callable[[], Player] | None = None
    """Makes a player that one viewer at a time may ask, again after it was interrupted or has failed."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _player: Player | None = None

    @contextlib.contextmanager
    def playing(self, step: int, generation: int | None, seed: int, stop: Stop) -> Iterator[Player]:
        """A player for one move; raises Stopped if `stop` is set while it waits for its turn."""
        if self.make is None:
            if (net := self.net(generation)) is None:
                yield make_player(self.text.format(step), self.loaded, seed=seed)
            else:
                yield make_player(net, self.loaded, seed=seed, simulations=step)
            return
        with stop.holding(self._lock):
            player, self._player = self._player or self.make(), None
            yield player
            self._player = player

    def evaluate(self, generation: int | None) -> tuple[Evaluate, SearchConfig]:
        """The evaluations for one search, and the settings that it learned with. Raises InputError."""
        if not self.searches:
            raise InputError(f"{self.title} does not search, so it cannot analyse: choose a net or mcts")
        kernels = kernels_of(self.loaded.game)
        if (net := self.net(generation)) is None:
            return Playouts(kernels, 0), PLAY
        return Evaluator(kernels, net, CACHE_SIZE, sees_wins=True), search_of(net, self.title)

    def as_fields(self) -> dict[str, Any]:
        """The contestant for a message, with the generations of a run to choose from."""
        return {
            "id": self.id, "title": self.title, "note": self.note, "searches": self.searches,
            "slider": self.slider and self.slider.as_fields(),
            "generations": generations_of(self.run, "generation") if self.run else [],
        }  # fmt: skip


def saved_net(id: str, title: str, loaded: LoadedGame, nets: Nets, text: str, run: Path | None = None) -> Seat:
    """The seat of a network in a file, or of a run's nets. Raises InputError."""
    card: Mapping[str, Any] = {} if run else find_net(text, loaded)[1]

    def net(generation: int | None) -> NeuralNet:
        named = text if generation is None or run is None else f"{text}:{generation}"
        return nets(find_checkpoint(named, loaded))

    note = "a run's net" if run else size_of(card)
    return Seat(id, title, loaded, note, slider_of(card), net=net, searches=True, run=run)


def is_figure(value: object) -> TypeGuard[float]:
    """A number that can be shown; a card may come from strangers, with one of 400 digits."""
    return isinstance(value, int | float) and abs(value) < 1e15


def slider_of(card: Mapping[str, Any]) -> Slider:
    """The simulations at which a net's card says how strong it is; the usual ones if it does not say."""
    benchmark, matches = card.get("benchmark"), card.get("matches")
    words: dict[int, list[str]] = {}
    if isinstance(benchmark, Mapping):
        for step, figures in benchmark.items():
            if re.fullmatch("[0-9]{1,7}", step) and isinstance(figures, Mapping) and figures:
                name, value = next(iter(figures.items()))
                if is_figure(value):
                    solved = f"accuracy {value:.1%} on solved positions"
                    said = solved if name.endswith("_accuracy") else f"{name.replace('_', ' ')} {value:.1%}"
                    words.setdefault(int(step), []).append(said)
    match = matches[-1] if isinstance(matches, list) and matches else None  # against the strongest opponent
    if isinstance(match, Mapping) and is_figure(match.get("score")):
        step, opponent = match.get("simulations"), match.get("opponent")
        if isinstance(step, int) and 0 <= step < 10**6 and isinstance(opponent, str):
            words.setdefault(step, []).append(f"{match['score']:.0%} against {opponent[:40]}")
    steps = tuple(sorted(words)) if len(words) > 1 else SIMULATIONS
    start = USUAL if USUAL in steps else steps[-1]
    return Slider("simulations", steps, start, {step: ", ".join(said) for step, said in words.items()})


def size_of(card: Mapping[str, Any]) -> str:
    """The size of a net, as its card says it."""
    parameters, hours = card.get("parameters"), card.get("hours")
    said = [f"{parameters:,} parameters"] if isinstance(parameters, int) and is_figure(parameters) else []
    if is_figure(hours):
        said.append(f"trained for {60 * hours:,.0f} minutes")
        if card.get("started_from"):
            said.append("from an earlier net")
    return ", ".join(said)


def usual_seats(loaded: LoadedGame, nets: Nets) -> list[Seat]:
    """The contestants that the game has without anybody naming them: nets first, strongest first."""
    most = 1 if loaded.game.num_outcomes else loaded.game.max_plies
    depths = tuple(depth for depth in DEPTHS if depth <= most)
    known = ("best", "strong", "club", "standard", "beginner")
    order = sorted(loaded.nets, key=lambda name: (known.index(name) if name in known else len(known), name))
    seats = [saved_net(name, name, loaded, nets, name) for name in order]
    playout_slider, depth_slider = Slider("simulations", PLAYOUTS, 400), Slider("depth", depths, min(4, depths[-1]))
    seats += [Seat(name, name, loaded, "a player of this game's own", text=name) for name in loaded.contestants]
    seats += [
        Seat("mcts", "mcts", loaded, "tree search with random playouts", playout_slider, "mcts:{}", searches=True),
        Seat("minimax", "minimax", loaded, "alpha-beta to a fixed depth", depth_slider, "minimax:{}"),
    ]
    greedy = "takes a win, blocks a loss" if not loaded.game.num_outcomes else "the best mean over the next dice"
    for name, note in (("greedy", greedy), ("random", "any legal action")):
        if name not in loaded.contestants:
            seats.append(Seat(name, name, loaded, note, text=name))
    return seats


def given_seat(id: str, contestant: Contestant, loaded: LoadedGame, nets: Nets, device: str) -> Seat:
    """The seat of a contestant that was named where the page was started. Raises InputError."""
    if isinstance(contestant, NeuralNet):
        net, card = contestant, contestant.card
        check_net(net, loaded.game)
        return Seat(id, "net", loaded, size_of(card), slider_of(card), net=lambda generation: net, searches=True)
    if isinstance(contestant, str | Path):
        contestant = ContestantText.parse(text_of(contestant) if isinstance(contestant, Path) else contestant)
    if isinstance(contestant, ContestantText):
        title = contestant.text
        if contestant.name == "human":
            raise InputError("human sits at the page anyway: name another contestant, or none")
        if not contestant.settings and checkpoint_of(contestant, loaded):
            find_net(title, loaded)
            run = Path(title) if os.path.isdir(title) and title not in loaded.nets else None
            return saved_net(title if title in loaded.nets else id, title, loaded, nets, title, run)
    else:
        title = str(getattr(contestant, "name", None) or getattr(contestant, "__name__", "player"))
    make = partial(make_player, contestant, loaded, device=device)
    seat = Seat(id, title, loaded, "as given where this page was started", make=make)
    with seat.playing(0, None, 0, Stop()):  # a mistake is told at once
        return seat
