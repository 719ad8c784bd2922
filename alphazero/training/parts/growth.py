"""Nets of two sizes: a run may begin with a net of other sizes, which plays until the larger one passes the gate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting
from alphazero.invocation import option
from alphazero.players.contestants import check_announced, find_net
from alphazero.settings import config_from_dict
from alphazero.storage.files import to_json
from alphazero.training.config import RunConfig, settings_by_name


def read_net_settings(name: str, loaded: LoadedGame, like: RunConfig) -> Any:
    """The settings of the game's net in a checkpoint or run, of the type that `like.net` has; raises InputError."""
    path, card = find_net(name, loaded)
    net = config_from_dict(RunConfig, {"net": card["net"]}, f"the card of {path}", like).net
    check_announced(path, settings_by_name(net), loaded)
    return net


def with_sizes_of(name: str, loaded: LoadedGame, config: RunConfig) -> RunConfig:
    """The settings with the sizes of the net to begin with, if there is one; raises InputError."""
    return replace(config, net=read_net_settings(name, loaded, config)) if name else config


def check_growth(config: RunConfig, playing: Any) -> None:
    """Raises InvalidSetting if a net of other settings would play for ever, since there is no gate to pass."""
    if not same_sizes(config.net, playing) and not config.gate.enabled:
        raise InvalidSetting(
            f"{option('initial_net', config.initial_net)} has other sizes and would play for ever: a network of the "
            "new sizes must pass the gate, which is off; leave the network's sizes out, or turn the gate on"
        )


def same_sizes(one: Any, other: Any) -> bool:
    """Two settings of nets are equal once they are written: a card has lists where settings may have tuples."""
    return to_json(settings_by_name(one)) == to_json(settings_by_name(other))
