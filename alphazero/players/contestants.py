"""From a name on the command line to a player: NAME[:ARGUMENT][@setting=value,...]

    random                        any legal action
    greedy                        takes a win, blocks a loss, else random
    minimax:4                     alpha-beta to a depth
    mcts:400                      tree search with random playouts, simulations per ply
    human                         you, at the terminal
    python:MODULE:FUNCTION        your function (observations) -> logits; MODULE is dotted or the path of a .py file
    gtp:"COMMAND"                 a program that speaks the Go Text Protocol, as gtp:"gnugo --mode gtp"
    solver ...                    what the game itself offers
    best ...                      a net that is shipped for the game: the names of those in pretrained/GAME
    runs/c4                       a run folder (its best net), runs/c4:12 its generation 12
    net.safetensors               a checkpoint

Nets and mcts take settings: `temperature` (0, the best action, unless given), `temperature_plies` and
`final_temperature` (from that ply of a game on), `simulations` (a net's 0 = no search, its policy alone) and every
field of `SearchConfig`, as in `runs/c4:12@simulations=200,temperature=0.2`. A function takes the temperatures, an
engine `timeout`, the seconds that it may take for an answer: `gtp:"gnugo --mode gtp"@timeout=5`.

A text is split at the last `@` that a word and `=` follow with no quotation mark behind them, so a path or a command
may hold an `@`. What is before it is a known name, if its part before the first `:` is one; else it is a path, and `:`
with digits at its end is the generation. A run folder that is called like a known name is `./random`. FUNCTION is what
follows the last `:`, so MODULE may hold some. The quotation marks round COMMAND may be left out where a shell has
taken them away; it is split into words as a shell would, but no shell runs it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from alphazero.errors import CheckpointError, InvalidSetting, UnknownName
from alphazero.game.kernels import Kernels
from alphazero.game.spec import LoadedGame
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.gtp_player import TIMEOUT, GtpPlayer
from alphazero.players.human import HumanPlayer
from alphazero.players.net_players import SearchPlayer, make_net_player
from alphazero.players.player import Player, Temperature
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import playouts
from alphazero.storage.files import sha256_of
from alphazero.storage.run_folder import resolve_checkpoint

if TYPE_CHECKING:
    from alphazero.nets.neural_net import NeuralNet


NAMES = ("random", "greedy", "minimax", "mcts", "human", "python", "gtp")
"""What every game has."""
ADVICE = 400
"""Simulations of the playouts that give a human hints where the opponent does not search."""
HINT = "or a checkpoint file, a run folder, or folder:GENERATION"
PLAY = SearchConfig(noise_fraction=0.0)
"""How contestants search unless told otherwise: without the noise that self-play needs."""
DEVICES = "auto", "cpu", "cuda"
"""Where nets compute: `auto` is a GPU if there is one."""
SIMULATIONS_PER_ACTION = 16
"""A net whose search halves considers one more action at the root for so many, if it did not learn with more of them:
those that it leaves out are never looked at, however long it searches."""

_SIMULATIONS = {"simulations", "num_simulations"}
_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class _Text:
    """A contestant's text in its parts."""

    whole: str
    head: str
    """All but the settings."""
    name: str
    """The head up to its first colon."""
    argument: str
    settings: Mapping[str, str]


def open_contestant(
    text: str, loaded: LoadedGame, *, seed: int, threads: int, simulations: int | None = None, device: str = "auto"
) -> Player:
    """The player that `text` means; `simulations` is for those who search and do not say how much.

    `device` is where nets compute, one of DEVICES. Raises UnknownName, InvalidSetting, or CheckpointError.
    """
    parts, kernels = _find_shipped(_split(text), loaded), Kernels(loaded.game)
    if parts.name in loaded.contestants:
        player: Player = loaded.contestants[parts.name](
            kernels, parts.argument, parts.settings, seed=seed, threads=threads
        )
    elif parts.name == "mcts":
        player = _open_mcts(parts, kernels, seed, threads, simulations)
    elif parts.name == "human":
        player = _open_human(parts, loaded, kernels, seed)
    elif parts.name == "python":
        player = _open_function(parts, kernels, seed)
    elif parts.name == "gtp":
        player = _open_engine(parts, loaded)
    elif parts.name in NAMES:
        player = _open_plain(parts, kernels, seed, threads)
    elif _is_path(parts):
        player = _open_net(parts, loaded, kernels, seed, threads, simulations, device)
    else:
        raise UnknownName("contestant", parts.head, [*NAMES, *loaded.contestants, *loaded.nets], HINT)
    player.name = text
    return player


def open_opponents(
    names: Sequence[str], flag: str, loaded: LoadedGame, *, seed: int, threads: int, device: str = "auto"
) -> list[Player]:
    """The contestants that the option `flag` lists, for matches that nobody watches.

    Raises as `open_contestant` does, and InvalidSetting for one who plays one game at a time.
    """
    players = [open_contestant(name, loaded, seed=seed, threads=threads, device=device) for name in names]
    for player in players:
        if player.one_at_a_time:
            raise InvalidSetting(f"{player.name} cannot be one of {flag}: it plays one game at a time")
    return players


def find_checkpoint(text: str, loaded: LoadedGame) -> Path:
    """The weights that the name of a shipped net, or what `resolve_checkpoint` knows, means."""
    if text in loaded.nets:
        return loaded.nets[text]
    try:
        return resolve_checkpoint(text)
    except CheckpointError as error:
        shipped = f", or a shipped net ({', '.join(loaded.nets)})" if loaded.nets else ""
        raise CheckpointError(f"{error}{shipped}") from error


def game_of(text: str) -> str | None:
    """The game on the card of the checkpoint that `text` names; None if it names no checkpoint."""
    parts = _split(text)
    if parts.name in NAMES or not _is_path(parts):
        return None
    return str(_find_checkpoint(parts.head)[1]["game"])


def weights_of(text: str, loaded: LoadedGame) -> str | None:
    """SHA-256 of the weights in the checkpoint that `text` names; None if it names no checkpoint."""
    parts = _find_shipped(_split(text), loaded)
    if parts.name in NAMES or not _is_path(parts):
        return None
    return sha256_of(_find_checkpoint(parts.head)[0])


def _find_shipped(parts: _Text, loaded: LoadedGame) -> _Text:
    """The parts with the path of a shipped net instead of its name."""
    if parts.name in NAMES or parts.name in loaded.contestants or parts.name not in loaded.nets:
        return parts
    _refuse_argument(parts)
    path = str(loaded.nets[parts.name])
    return replace(parts, head=path, name=path)


def _split(text: str) -> _Text:
    match = re.fullmatch(r"(.*)@(\w+=[^\"]*)", text, re.DOTALL)
    head, settings_text = match.groups() if match else (text, "")
    settings: dict[str, str] = {}
    for item in filter(None, settings_text.split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidSetting(f"{text!r}: {item!r} is not of the form setting=value")
        if name in settings:
            raise InvalidSetting(f"{text!r} gives {name} twice")
        settings[name] = value
    name, _, argument = head.partition(":")
    return _Text(text, head, name, argument, settings)


def _is_path(parts: _Text) -> bool:
    path = re.sub(r":\d+$", "", parts.head)
    return os.sep in path or path.endswith(".safetensors") or (path != "" and os.path.exists(path))


def _open_plain(parts: _Text, kernels: Kernels, seed: int, threads: int) -> Player:
    """The players without settings."""
    _refuse_settings(parts)
    if parts.name == "minimax":
        return MinimaxPlayer(kernels, _whole_argument(parts, "a depth", "minimax:4"), seed, threads)
    _refuse_argument(parts)
    return GreedyPlayer(kernels, seed) if parts.name == "greedy" else RandomPlayer(kernels, seed)


def _open_human(parts: _Text, loaded: LoadedGame, kernels: Kernels, seed: int) -> HumanPlayer:
    _refuse_settings(parts)
    _refuse_argument(parts)
    config = replace(PLAY, num_simulations=ADVICE)
    adviser = SearchPlayer(f"mcts:{ADVICE}", kernels, [playouts(kernels, seed)], config, seed)
    return HumanPlayer(loaded.game, adviser, loaded.make_truth and loaded.make_truth(loaded.game), seed)


def _open_function(parts: _Text, kernels: Kernels, seed: int) -> Player:
    from alphazero.players.function_player import FunctionPlayer

    types = get_type_hints(Temperature)
    return FunctionPlayer(kernels, parts.argument, seed, Temperature(**_parse_settings(parts, types)))


def _open_engine(parts: _Text, loaded: LoadedGame) -> Player:
    timeout = _number_setting(parts, "timeout", TIMEOUT, 0.01, 86_400.0)
    quoted = re.fullmatch(r"\s*\"(.*)\"\s*", parts.argument, re.DOTALL)
    words = loaded.gtp_words(loaded.game)
    return GtpPlayer(loaded.game, words, quoted[1] if quoted else parts.argument, timeout)


def _number_setting(parts: _Text, name: str, default: float, low: float, high: float) -> float:
    """The only setting that such a contestant takes."""
    for given in parts.settings:
        if given != name:
            raise UnknownName("setting", given, [name])
    value = float(_parse_setting(name, parts.settings.get(name, str(default)), float))
    if not low <= value <= high:
        raise InvalidSetting(f"the {name} of {parts.name} must lie between {low:g} and {high:g}, not {value:g}")
    return value


def _refuse_settings(parts: _Text) -> None:
    if parts.settings:
        raise InvalidSetting(f"{parts.name} takes no settings, so {parts.whole!r} means nothing")


def _refuse_argument(parts: _Text) -> None:
    if parts.argument or parts.head != parts.name:
        raise InvalidSetting(f"{parts.name} takes no argument, so {parts.head!r} means nothing")


def _open_mcts(parts: _Text, kernels: Kernels, seed: int, threads: int, simulations: int | None) -> Player:
    if parts.argument or (simulations is None and not parts.settings.keys() & _SIMULATIONS):
        simulations = _whole_argument(parts, "its simulations per ply", "mcts:400")
        if parts.settings.keys() & _SIMULATIONS:
            raise InvalidSetting(f"{parts.whole!r} gives its simulations twice")
    config, temperature = _search_settings(parts, simulations)
    if config is None:
        raise InvalidSetting(f"mcts needs at least 1 simulation per ply, so {parts.whole!r} cannot play")
    return SearchPlayer("", kernels, [playouts(kernels, seed)] * threads, config, seed, temperature)


def _open_net(
    parts: _Text, loaded: LoadedGame, kernels: Kernels, seed: int, threads: int, simulations: int | None, device: str
) -> Player:

    net, card = _load_net(parts.head, loaded, device)
    try:  # it searches as it did when it learned, but for the noise and the number of simulations
        learned = SearchConfig(**card.get("search", {}))
    except TypeError as error:
        raise CheckpointError(f"the search settings on the card of {parts.head} do not fit: {error}") from error
    base = replace(learned, noise_fraction=0.0, reuse_subtree=False, num_simulations=PLAY.num_simulations)
    config, temperature = _search_settings(parts, simulations, base)
    if config is not None and config.gumbel_actions and "gumbel_actions" not in parts.settings:
        actions = max(config.gumbel_actions, config.num_simulations // SIMULATIONS_PER_ACTION)
        config = replace(config, gumbel_actions=actions)
    return make_net_player("", kernels, net, config, seed=seed, threads=threads, temperature=temperature)


def _find_checkpoint(text: str) -> tuple[Path, dict[str, Any]]:
    """The checkpoint that `text` names, and its card."""
    from alphazero.storage.checkpoint import read_card

    path = resolve_checkpoint(text)
    card = read_card(path)
    if not isinstance(card.get("game"), str) or not isinstance(card.get("net"), dict):
        raise CheckpointError(f"the card of {path} does not say which game and net it is for; use another checkpoint")
    return path, card


def _load_net(text: str, loaded: LoadedGame, device: str) -> tuple[NeuralNet, dict[str, Any]]:
    import torch

    path, card = _find_checkpoint(text)
    if card["game"] != loaded.game.name:
        raise CheckpointError(f"{path} is a net for {card['game']}, not for {loaded.game.name}")
    net = loaded.make_net(loaded.game, card["net"])
    net.load(path)
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidSetting("--device cuda: torch finds no CUDA device here; leave it out to use the CPU")
    net.use_device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    return net, card


def _whole_argument(parts: _Text, what: str, example: str) -> int:
    try:
        return _parse_whole(parts.argument)
    except ValueError:
        given = f"not {parts.argument!r}" if parts.argument else "which is missing"
        raise InvalidSetting(f"{parts.name} takes {what} as a whole number, {given}: write {example}") from None


def _search_settings(
    parts: _Text, simulations: int | None, base: SearchConfig = PLAY
) -> tuple[SearchConfig | None, Temperature]:
    """The search that a contestant asks for, None for 0 simulations; and the temperature."""
    types = {name: kind for name, kind in get_type_hints(SearchConfig).items() if name != "reuse_subtree"}
    of_temperature = get_type_hints(Temperature)
    values = _parse_settings(parts, types | of_temperature | {"simulations": int})
    if values.keys() >= _SIMULATIONS:
        raise InvalidSetting(f"{parts.whole!r} gives its simulations twice")
    temperature = Temperature(**{name: values.pop(name) for name in of_temperature if name in values})
    if simulations is not None:
        values.setdefault("num_simulations", simulations)
    if "simulations" in values:
        values["num_simulations"] = values.pop("simulations")
    num_simulations = values.get("num_simulations")
    if num_simulations == 0:
        return None, temperature
    if num_simulations is not None and num_simulations < 0:
        raise InvalidSetting(f"simulations must not be negative: {num_simulations}")
    return replace(base, **values), temperature


def _parse_settings(parts: _Text, types: Mapping[str, type]) -> dict[str, Any]:
    """The settings of a contestant, as their types have it."""
    values: dict[str, Any] = {}
    for name, text in parts.settings.items():
        if name not in types:
            raise UnknownName("setting", name, types)
        values[name] = _parse_setting(name, text, types[name])
    return values


def _parse_setting(name: str, text: str, kind: type) -> int | float | bool:
    try:
        if kind is bool:
            return _TRUTHS[text.lower()]
        return _parse_whole(text) if kind is int else float(text)
    except (KeyError, ValueError):
        raise InvalidSetting(f"setting {name} takes {_TYPES[kind]}, not {text!r}") from None


def _parse_whole(text: str) -> int:
    """ValueError unless `text` is a whole number of a sane length."""
    if len(text) > 18:
        raise ValueError
    return int(text)
