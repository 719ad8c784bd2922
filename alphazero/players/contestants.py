"""From a contestant's text, NAME[:ARGUMENT][@setting=value,...] (docs/guides/contestants.md), to a player.

A text is a contestant of that name if the part before its first `:` is a known name. Otherwise it is a path, and `:`
with digits at its end is the generation: write `./random` for a run folder called `random`. The FUNCTION of
`python:MODULE:FUNCTION` follows the last `:`. The command of `gtp:"COMMAND"` and `uci:"COMMAND"` needs no quotation
marks where the shell has removed them; it is split into words as a shell would, but no shell runs it.

The settings begin at the last `@` that is followed by a word and `=`, with no quotation mark after it: so a path or a
command may hold an `@`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, SupportsIndex, get_type_hints

from alphazero.catalogue.loaded import LaterPart, LoadedGame
from alphazero.errors import CheckpointError, InvalidSetting, UnknownName, quote, shorten
from alphazero.game import Position
from alphazero.game.kernels import kernels_of
from alphazero.game.reading.gtp_words import check_spoken
from alphazero.machine import without_draws
from alphazero.nets.devices import choose_device, describe_inference, say_once, usual_torch, wanted_inference
from alphazero.nets.neural_net import NeuralNet, check_net
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.engine_process import TIMEOUT
from alphazero.players.function_player import FunctionPlayer, LogitsPlayer, find_function
from alphazero.players.gtp_player import GtpPlayer
from alphazero.players.human import HumanPlayer
from alphazero.players.net_players import SearchPlayer, make_net_player
from alphazero.players.player import Player, Temperature
from alphazero.players.uci_player import LIMITS, UciPlayer
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import Playouts
from alphazero.settings import check_function, check_range, config_from_dict
from alphazero.storage.checkpoint import read_net_card
from alphazero.storage.formats import MAX_WEIGHTS_BYTES
from alphazero.storage.run_names import resolve_checkpoint
from alphazero.storage.schema import MOST_TEXT

NAMES = ("random", "greedy", "minimax", "mcts", "human", "python", "gtp", "uci")
"""Contestants that every game has."""
_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class ContestantText:
    """A contestant as somebody typed it, in its parts; it is read once, by `parse`."""

    text: str
    head: str
    """All but the settings."""
    name: str = field(compare=False)
    """The head up to its first colon."""
    argument: str = field(compare=False)
    settings: Mapping[str, str] = field(compare=False)

    @staticmethod
    def parse(text: str) -> ContestantText:
        """Raises InvalidSetting for a text that no contestant can have."""
        if len(text) > MOST_TEXT:  # else it could not be read again from the files of its games
            raise InvalidSetting(
                f"{quote(text)} has {len(text):,} characters, and a contestant has {MOST_TEXT:,} at most: put a long "
                "command into a script"
            )
        match = re.fullmatch(r"(.*)@(\w+=[^\"]*)", text, re.DOTALL)
        head, settings_text = match.groups() if match else (text, "")
        settings: dict[str, str] = {}
        for item in filter(None, settings_text.split(",")):
            name, equals, value = item.partition("=")
            if not equals or name in settings:
                raise InvalidSetting(f"{quote(text)} must give each setting once, in the form setting=value")
            settings[name] = value
        name, _, argument = head.partition(":")
        return ContestantText(text, head, name, argument, settings)

    def __str__(self) -> str:
        return self.text

    @property
    def is_path(self) -> bool:
        """The head looks like the path of a net, or there is one."""
        path = re.sub(r":\d+$", "", self.head)
        return "/" in path or os.sep in path or path.endswith(".safetensors") or (path != "" and os.path.exists(path))

    @property
    def runs_code(self) -> bool:
        """The contestant runs code that its text names; such texts are never taken from a file."""
        return self.name in ("python", "gtp", "uci")

    @property
    def plays_alone(self) -> bool:
        """The contestant plays one game at a time."""
        return self.name in ("human", "gtp", "uci")

    def at(self, path: str | Path) -> ContestantText:
        """The same contestant with its net in this file."""
        path = os.path.join(os.curdir, path)
        return replace(self, head=path, name=path, argument="")

    def whole_argument(self, what: str, example: str) -> int:
        """The argument as a whole number; raises InvalidSetting."""
        try:
            return _parse_value(self.argument, int)
        except ValueError:
            given = quote(self.argument)
            raise InvalidSetting(f"{self.name} takes {what}, a whole number, not {given}: write {example}") from None

    def settings_as(self, types: Mapping[str, type]) -> dict[str, Any]:
        """The settings, converted to these types; raises InputError."""
        values: dict[str, Any] = {}
        for name, text in self.settings.items():
            if not types:
                raise InvalidSetting(f"{self.name} takes no settings, so {quote(self.text)} means nothing")
            if name not in types:
                raise UnknownName("setting", name, types)
            try:
                values[name] = _parse_value(text, types[name])
            except (KeyError, ValueError):
                raise InvalidSetting(f"setting {name} takes {_TYPES[types[name]]}, not {quote(text)}") from None
        return values


def _parse_value(text: str, kind: type) -> Any:
    """Raises KeyError or ValueError, also for a whole number that is very long."""
    if kind is bool:
        return _TRUTHS[text.lower()]
    if kind is int and len(text) > 18:
        raise ValueError
    return kind(text)


Contestant = str | Path | ContestantText | Player | NeuralNet | Callable[[Position], SupportsIndex]
BYTES_PER_WEIGHT = 2
"""The least that a weight takes in a file."""
ADVICE = 400
"""Simulations of the search that gives a human hints if the opponent does not search."""
PLAY = SearchConfig(noise_fraction=0.0)
"""The default search of contestants: without the noise of self-play."""
SIMULATIONS_PER_ACTION = 16
"""A Gumbel search considers at least simulations / 16 actions at the root: it never searches the others."""


def make_player(
    contestant: Contestant,
    loaded: LoadedGame,
    *,
    seed: int = 0,
    threads: int = 1,
    simulations: int | None = None,
    device: str = "auto",
) -> Player:
    """A player from a contestant's text, the path of a net or run, a Player, a net, or a function from positions.

    `simulations` per ply are for contestants that search and do not say how many. A network searches as it learned to
    if its card says how, by default with 200; at 0 it plays by its policy alone. `device` is where nets compute:
    `auto`, `cpu` or `cuda`. Raises UnknownName, InvalidSetting, or CheckpointError.
    """
    if isinstance(contestant, Path):
        contestant = text_of(contestant)
    if isinstance(contestant, str):
        contestant = ContestantText.parse(contestant)
    if isinstance(contestant, ContestantText):
        player = _open(contestant, loaded, seed, threads, simulations, device)
        player.name = contestant.text
        return player
    if isinstance(contestant, Player):
        kind = type(contestant).__name__
        check_function(f"{kind}.select_actions", contestant.select_actions, "states", "games", "plies")
        if not hasattr(contestant, "name"):
            object.__setattr__(contestant, "name", kind)  # a frozen dataclass refuses otherwise
        return contestant
    if isinstance(contestant, NeuralNet):
        check_net(contestant, loaded.game)
        search, _ = _search_settings(ContestantText.parse("net"), simulations, search_of(contestant, "this net"))
        return make_net_player("net", kernels_of(loaded.game), contestant, search, seed=seed, threads=threads)
    if callable(contestant) and not isinstance(contestant, type) and not hasattr(contestant, "forward"):
        return FunctionPlayer(loaded.game, contestant)
    raise InvalidSetting(
        "a contestant is a text, a Path, a Player, a NeuralNet (as the `net` of a run), or a function from a position "
        f"to an action, not {quote(contestant)}"
    )


def text_of(path: Path) -> str:
    """The contestant's text for a run folder or a checkpoint; `./random` is no player's name."""
    return str(path) if len(path.parts) > 1 else os.path.join(os.curdir, path)


def _open(
    named: ContestantText, loaded: LoadedGame, seed: int, threads: int, simulations: int | None, device: str
) -> Player:
    """The player that a text means."""
    kernels, own = kernels_of(loaded.game), loaded.contestants.get(named.name)
    if own is not None:
        return own(kernels, named.argument, named.settings, seed=seed, threads=threads)  # type: ignore[no-any-return]
    if named.name in ("random", "greedy", "human", *loaded.nets) and named.head != named.name:
        raise InvalidSetting(f"{named.name} takes no argument, so {quote(named.head)} means nothing")
    if named.name in ("random", "greedy", "human", "minimax"):
        named.settings_as({})
    if named.name == "random":
        return RandomPlayer(kernels, seed)
    if named.name == "greedy":
        return GreedyPlayer(kernels, seed)
    if named.name == "human":
        config = replace(PLAY, num_simulations=ADVICE)
        adviser = SearchPlayer(f"mcts:{ADVICE}", kernels, [Playouts(kernels, seed)], seed, config=config)
        return HumanPlayer(loaded.game, adviser, loaded.make_oracle and loaded.make_oracle(loaded.game), seed)
    if named.name == "minimax":
        return MinimaxPlayer(kernels, named.whole_argument("a depth", "minimax:4"), seed, threads)
    if named.name == "mcts":
        search, temperature = _search_settings(named, simulations)
        if search is None:
            raise InvalidSetting(f"mcts needs at least 1 simulation per ply, so {quote(named.text)} cannot play")
        return SearchPlayer("", kernels, [Playouts(kernels, seed)] * threads, seed, temperature, config=search)
    if named.name == "python":
        temperature = Temperature(**named.settings_as(get_type_hints(Temperature)))
        return LogitsPlayer(named.head, kernels, find_function(named.argument), seed, temperature)
    if named.name in ("gtp", "uci"):
        return _open_engine(named, loaded)
    if (path := _path_of(named, loaded)) is None:
        hint = "or a checkpoint file, a run folder, or folder:GENERATION"
        if re.fullmatch(r"\w+=.*", named.head):  # as PowerShell splits it
            hint = 'put a contestant and its settings into quotation marks, as "best@simulations=9,temperature=1"'
        raise UnknownName("contestant", named.head, [*NAMES, *loaded.contestants, *loaded.nets], hint)
    net = load_net(path, loaded, device)
    search, temperature = _search_settings(named, simulations, search_of(net, path))
    return make_net_player("", kernels, net, search, seed=seed, threads=threads, temperature=temperature)


def _open_engine(named: ContestantText, loaded: LoadedGame) -> Player:
    """An engine that speaks GTP; or UCI, whose settings are limits of its search and its own options."""
    speaks_uci = named.name == "uci"
    types = {"timeout": float, **(dict.fromkeys(LIMITS, int) if speaks_uci else {})}
    options = {name: value for name, value in named.settings.items() if speaks_uci and name not in types}
    own = {name: value for name, value in named.settings.items() if name not in options}
    limits = replace(named, settings=own).settings_as(types)
    timeout = limits.pop("timeout", TIMEOUT)
    check_range(f"the timeout of {named.name}", timeout, 0.01, 86_400.0, whole=False)
    for name, limit in limits.items():
        check_range(f"{name} of uci", limit, 1, 1 << 40)
    quoted = re.fullmatch(r"\s*\"(.*)\"\s*", named.argument, re.DOTALL)
    command = quoted[1] if quoted else named.argument
    if speaks_uci:
        return UciPlayer(loaded.game, command, limits, options, timeout)
    check_spoken(loaded.game)
    return GtpPlayer(loaded.game, loaded.gtp_words(loaded.game), command, timeout)


def _path_of(named: ContestantText, loaded: LoadedGame) -> str | None:
    """The name or path of the contestant's net, for `load_net`; None if it is no net."""
    if named.name in NAMES or named.name in loaded.contestants:
        return None
    if named.name in loaded.nets:
        return named.name
    return named.head if named.is_path else None


def open_opponents(
    opponents: Sequence[str], flag: str, loaded: LoadedGame, *, seed: int, threads: int, device: str = "auto"
) -> list[Player]:
    """The contestants that the option `flag` lists; raises InvalidSetting for one who plays one game at a time."""
    named = [ContestantText.parse(text) for text in opponents]
    for one in named:
        if one.plays_alone:  # before a program is started
            raise InvalidSetting(f"{one} cannot be one of {flag}: it plays one game at a time")
    return [make_player(one, loaded, seed=seed, threads=threads, device=device) for one in named]


def find_checkpoint(text: str, loaded: LoadedGame) -> Path:
    """The weights that the name of a shipped net, or what `resolve_checkpoint` knows, means."""
    if text in loaded.nets:
        return loaded.nets[text]
    try:
        return resolve_checkpoint(text)
    except CheckpointError as error:
        raise CheckpointError(f"{error}, or a shipped net ({', '.join(loaded.nets) or 'none here'})") from error


def game_of(contestant: ContestantText) -> str | None:
    """The game on the card of the checkpoint that the contestant is; None if it is none, or a shipped one."""
    if contestant.name in NAMES or not contestant.is_path:
        return None
    return str(read_net_card(resolve_checkpoint(contestant.head))["game"])


def checkpoint_of(contestant: ContestantText, loaded: LoadedGame) -> tuple[Path, str] | None:
    """The checkpoint that the contestant is, and the SHA-256 of the weights on its card; None if it is none."""
    if (text := _path_of(contestant, loaded)) is None:
        return None
    path = find_checkpoint(text, loaded)
    return path, str(read_net_card(path)["weights"]["sha256"])


def search_of(net: NeuralNet, where: str) -> SearchConfig:
    """The search of the net's training, without its noise; PLAY if the card names none."""
    try:
        learned = config_from_dict(SearchConfig, net.card.get("search", {}), "search")
    except InvalidSetting as error:
        raise CheckpointError(f"the search settings on the card of {where} do not fit: {error}") from error
    return replace(learned, noise_fraction=0.0, reuse_subtree=False, num_simulations=PLAY.num_simulations)


def find_net(text: str, loaded: LoadedGame) -> tuple[Path, dict[str, Any]]:
    """The weights that `text` means, and their card; raises CheckpointError if the game cannot play with them."""
    path = find_checkpoint(text, loaded)
    card = read_net_card(path)
    if card["game"] != loaded.game.name:
        raise CheckpointError(f"{path} is a net for {card['game']:.80}, not for {loaded.game.name}")
    if "made_by" in card and "make_net" not in loaded.replaced:
        raise CheckpointError(
            f"{path} is a net made by the function {shorten(card['made_by'])}, which no text can name: open it in "
            "Python by az.load_run(folder, net=...) or az.load_net(name, game, net=...), and let that net play"
        )
    return path, card


@usual_torch()
def load_net(text: str, loaded: LoadedGame, device: str = "auto", inference: str | None = None) -> NeuralNet:
    """The net of a checkpoint, a run folder or a shipped net; its card also has the `search` that it learned with.

    `device` is `auto`, `cpu` or `cuda`; `inference` one of INFERENCES, or None for the one that the environment asks
    for. Raises CheckpointError or InvalidSetting.
    """
    path, card = find_net(text, loaded)
    check_announced(path, card["net"], loaded)
    with without_draws():  # a fresh net draws its weights, which are overwritten
        net = loaded.make_net(loaded.game, card["net"])
    net.load_weights(path, card)
    net.use_device(choose_device(device))
    library = net.use_inference(inference or wanted_inference())
    say_once(f"networks run with {describe_inference(library)}")
    net.card = {**net.card, **({"search": card["search"]} if "search" in card else {})}
    return net


def weights_announced(sizes: Mapping[str, Any], loaded: LoadedGame) -> int:
    """Almost all weights of the game's network of these sizes, and no more than it has; 0 if nobody can tell."""
    from alphazero.nets.resnet import least_weights, make_net

    if "make_net" in loaded.replaced:  # somebody's network, to which the sizes mean what they like
        return 0
    own = loaded.make_net.resolve() if isinstance(loaded.make_net, LaterPart) else loaded.make_net
    return least_weights(sizes, loaded.game, own_policy=own is not make_net)


def check_sizes(sizes: Mapping[str, Any], loaded: LoadedGame) -> None:
    """Raises InvalidSetting if the game's network of these sizes is absurdly large, before it is made."""
    num_bytes = 4 * weights_announced(sizes, loaded)
    if num_bytes > MAX_WEIGHTS_BYTES:
        raise InvalidSetting(
            f"a network of these sizes has {num_bytes:,} bytes or more, and at most {MAX_WEIGHTS_BYTES:,} are allowed: "
            "choose smaller sizes"
        )


def check_announced(path: Path, sizes: Mapping[str, Any], loaded: LoadedGame) -> None:
    """Raises CheckpointError if the game's network of these sizes could not come from the file, before it is made."""
    if BYTES_PER_WEIGHT * weights_announced(sizes, loaded) > path.stat().st_size:
        raise CheckpointError(f"{path} is too small for the network that its card announces: use another checkpoint")


def _search_settings(
    named: ContestantText, simulations: int | None, base: SearchConfig = PLAY
) -> tuple[SearchConfig | None, Temperature]:
    """The search that a contestant asks for, None for 0 simulations; and the temperature."""
    of_temperature = get_type_hints(Temperature)
    types = get_type_hints(SearchConfig) | of_temperature | {"simulations": int}
    del types["reuse_subtree"]
    values = named.settings_as(types)
    temperature = Temperature(**{name: values.pop(name) for name in of_temperature if name in values})
    numbers = [values.pop(name) for name in ("simulations", "num_simulations") if name in values]
    if named.name == "mcts" and (named.argument or (simulations is None and not numbers)):
        numbers.append(named.whole_argument("its simulations per ply", "mcts:400"))
    if len(numbers) > 1:
        raise InvalidSetting(f"{quote(named.text)} gives its simulations twice")
    if (number := numbers[0] if numbers else simulations) is not None:
        check_range("simulations", number, 0, 1_000_000)
        values["num_simulations"] = number
    if number == 0:
        return None, temperature
    search = replace(base, **values)
    if search.gumbel_actions and "gumbel_actions" not in named.settings:
        widened = max(search.gumbel_actions, search.num_simulations // SIMULATIONS_PER_ACTION)
        search = replace(search, gumbel_actions=widened)
    return search, temperature
