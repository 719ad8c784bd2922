"""The contestants that the page offers for one game, each by an id.

The page names a contestant by its id and by one number: simulations or a depth. No text of the page ever becomes a
contestant's text, so programs and Python functions play only if they were named where the page was started.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InputError, Stopped, quote
from alphazero.game.kernels import kernels_of
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestant_text import ContestantText
from alphazero.players.contestants import (
    PLAY,
    Contestant,
    check_net,
    find_checkpoint,
    find_net,
    make_player,
    search_of,
    text_of,
)
from alphazero.players.player import Player
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, SearchConfig
from alphazero.search.rollouts import playouts
from alphazero.storage.generations import generations_of
from alphazero.web.kept import Kept

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
Nets = Kept[NeuralNet]
"""The nets of one game, by the paths of their files."""


@dataclass(frozen=True)
class Slider:
    """The number that a contestant takes."""

    unit: str
    """`simulations` or `depth`."""
    steps: tuple[int, ...]
    start: int
    measured: Mapping[int, str]
    """The strength that was measured at a step, in words."""

    def as_fields(self) -> dict[str, Any]:
        """The slider for a message."""
        return {**vars(self), "measured": [self.measured.get(step, "") for step in self.steps]}


class Seat(ABC):
    """One contestant of the page."""

    def __init__(self, id: str, title: str, note: str = "", slider: Slider | None = None):
        self.id, self.title, self.note, self.slider = id, title, note, slider

    searches = False
    """`evaluate` gives the evaluations of a search, so the contestant can analyse."""

    def generations(self) -> list[int]:
        """The generations to choose from; none if the contestant is not a run."""
        return []

    def net(self, generation: int | None) -> NeuralNet | None:
        """The network that it asks now, if it has one; the best of a run without a generation. Raises InputError."""
        return None

    @abstractmethod
    @contextmanager
    def playing(self, step: int, generation: int | None, seed: int, stop: threading.Event) -> Iterator[Player]:
        """A player for one move; raises Stopped if `stop` is set while it waits for its turn."""

    def evaluate(self, generation: int | None) -> tuple[Evaluate, SearchConfig]:
        """The evaluations for one search, and the settings that it learned with. Raises InputError."""
        raise InputError(f"{self.title} does not search, so it cannot analyse: choose a net or mcts")

    def as_fields(self) -> dict[str, Any]:
        """The contestant for a message."""
        return {
            "id": self.id, "title": self.title, "note": self.note, "searches": self.searches,
            "slider": self.slider and self.slider.as_fields(), "generations": self.generations(),
        }  # fmt: skip


class PlainSeat(Seat):
    """A contestant that the command line would open by a text; `{}` in it stands for the slider's number."""

    def __init__(self, id: str, title: str, loaded: LoadedGame, text: str, note: str, slider: Slider | None = None):
        super().__init__(id, title, note, slider)
        self._loaded, self._text = loaded, text

    @contextmanager
    def playing(self, step: int, generation: int | None, seed: int, stop: threading.Event) -> Iterator[Player]:
        yield make_player(self._text.format(step), self._loaded, seed=seed, threads=1)


class PlayoutSeat(PlainSeat):
    """A search with random playouts."""

    searches = True

    def evaluate(self, generation: int | None) -> tuple[Evaluate, SearchConfig]:
        return playouts(kernels_of(self._loaded.game), 0), PLAY


class NetSeat(Seat):
    """A network."""

    searches = True
    _loaded: LoadedGame

    @abstractmethod
    def net(self, generation: int | None) -> NeuralNet:
        """The net of that generation, where there are some."""

    @contextmanager
    def playing(self, step: int, generation: int | None, seed: int, stop: threading.Event) -> Iterator[Player]:
        yield make_player(self.net(generation), self._loaded, seed=seed, simulations=step)

    def evaluate(self, generation: int | None) -> tuple[Evaluate, SearchConfig]:
        net = self.net(generation)
        evaluator = Evaluator(kernels_of(self._loaded.game), net, CACHE_SIZE, sees_wins=True)
        return evaluator, search_of(net, self.title)


class SavedNetSeat(NetSeat):
    """A network in a file, or the net of a run's generation."""

    def __init__(self, id: str, title: str, loaded: LoadedGame, nets: Nets, text: str, run: Path | None = None):
        self._loaded, self._nets, self._text, self._run = loaded, nets, text, run
        card: Mapping[str, Any] = {}
        if run is None:
            _, card = find_net(text, loaded)
        super().__init__(id, title, _size_of(card) if run is None else "a run's net", slider_of(card))

    def generations(self) -> list[int]:
        return [] if self._run is None else generations_of(self._run, "generation")

    def net(self, generation: int | None) -> NeuralNet:
        text = self._text if generation is None or self._run is None else f"{self._text}:{generation}"
        return self._nets.get(find_checkpoint(text, self._loaded))


class GivenNetSeat(NetSeat):
    """A network that was given as an object."""

    def __init__(self, id: str, title: str, loaded: LoadedGame, net: NeuralNet):
        check_net(net, loaded.game)
        super().__init__(id, title, _size_of(net.card), slider_of(net.card))
        self._loaded, self._net = loaded, net

    def net(self, generation: int | None) -> NeuralNet:
        return self._net


class GivenSeat(Seat):
    """A player that one viewer at a time may ask: a program, a function, a contestant with settings.

    `make` makes it when it is first asked, and again after it was interrupted or has failed; a player that was given
    as an object stays the same one.
    """

    def __init__(self, id: str, title: str, make: Callable[[], Player]):
        super().__init__(id, title, "as given where this page was started")
        self._make, self._lock = make, threading.Lock()
        self._player: Player | None = None

    @contextmanager
    def playing(self, step: int, generation: int | None, seed: int, stop: threading.Event) -> Iterator[Player]:
        while not self._lock.acquire(timeout=WAIT):
            if stop.is_set():
                raise Stopped
        try:
            player, self._player = self._player or self._make(), None
            yield player
            self._player = player
        finally:
            self._lock.release()


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
                    said = f"{name.replace('_', ' ')} {value:.1%}"
                    if name.endswith("_accuracy"):
                        said = f"accuracy {value:.1%} on solved positions"
                    words.setdefault(int(step), []).append(said)
    match = matches[-1] if isinstance(matches, list) and matches else None  # against the strongest opponent
    if isinstance(match, Mapping) and is_figure(match.get("score")):
        step, opponent = match.get("simulations"), match.get("opponent")
        if isinstance(step, int) and 0 <= step < 10**6 and isinstance(opponent, str):
            words.setdefault(step, []).append(f"{match['score']:.0%} against {opponent[:40]}")
    steps = tuple(sorted(words)) if len(words) > 1 else SIMULATIONS
    start = USUAL if USUAL in steps else steps[-1]
    return Slider("simulations", steps, start, {step: ", ".join(said) for step, said in words.items()})


def _size_of(card: Mapping[str, Any]) -> str:
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
    depths = tuple(depth for depth in DEPTHS if depth <= loaded.game.max_plies)
    known = ("best", "strong", "club", "standard", "beginner")
    order = sorted(loaded.nets, key=lambda name: (known.index(name) if name in known else len(known), name))
    seats: list[Seat] = [SavedNetSeat(name, name, loaded, nets, name) for name in order]
    seats += [PlainSeat(name, name, loaded, name, "a player of this game's own") for name in loaded.contestants]
    playout_slider = Slider("simulations", PLAYOUTS, 400, {})
    seats.append(PlayoutSeat("mcts", "mcts", loaded, "mcts:{}", "tree search with random playouts", playout_slider))
    depth_slider = Slider("depth", depths, min(4, depths[-1]), {})
    seats.append(PlainSeat("minimax", "minimax", loaded, "minimax:{}", "alpha-beta to a fixed depth", depth_slider))
    for name, note in (("greedy", "takes a win, blocks a loss"), ("random", "any legal action")):
        if name not in loaded.contestants:
            seats.append(PlainSeat(name, name, loaded, name, note))
    return seats


def given_seat(id: str, contestant: Contestant, loaded: LoadedGame, nets: Nets, device: str) -> Seat:
    """The seat of a contestant that was named where the page was started. Raises InputError."""
    if isinstance(contestant, str | Path):
        contestant = ContestantText.parse(text_of(contestant) if isinstance(contestant, Path) else contestant)
    if isinstance(contestant, NeuralNet):
        return GivenNetSeat(id, "net", loaded, contestant)
    if isinstance(contestant, ContestantText):
        title = contestant.text
        if title in loaded.nets:
            return SavedNetSeat(title, title, loaded, nets, title)
        path = Path(title)
        if path.suffix == ".safetensors" or os.path.isfile(path / "config.json"):
            run = None if path.suffix == ".safetensors" else path
            find_net(title, loaded)
            return SavedNetSeat(id, title, loaded, nets, title, run)
    else:
        title = str(getattr(contestant, "name", None) or getattr(contestant, "__name__", "player"))

    def make() -> Player:
        player = make_player(contestant, loaded, device=device)
        if player.name == "human":
            raise InputError("human sits at the page anyway: name another contestant, or none")
        return player

    seat = GivenSeat(id, title, make)
    with seat.playing(0, None, 0, threading.Event()):  # a mistake is told at once
        pass
    return seat


def find_seat(seats: Sequence[Seat], id: str) -> Seat:
    """The seat of that id; raises InputError."""
    for seat in seats:
        if seat.id == id:
            return seat
    raise InputError(f"there is no contestant {quote(id)} here; choose one from the list")
