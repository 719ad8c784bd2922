"""Writes a net as an ONNX file, for programs that know nothing of this framework:

alphazero export best net.onnx --game connect4
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.commands.options import DEFAULT_GAME, Contestant, GameName, Overwrite
from alphazero.commands.shared import parse, spare_files
from alphazero.errors import InvalidSetting
from alphazero.nets.devices import want_inference
from alphazero.nets.onnx_export import NUM_CHECKED, to_onnx
from alphazero.nets.torch_net import TorchNet
from alphazero.players.contestants import load_game, load_net
from alphazero.storage.files import atomic_write, check_output_file


@dataclass(frozen=True)
class ExportConfig:
    """Writes a net as an ONNX file, for programs that know nothing of this framework."""

    net: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="NET")]
    """The net: a shipped one (best), a run folder (its best net), folder:GENERATION, or a checkpoint."""
    output: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="OUTPUT")]
    """The file to write, as in net.onnx."""
    game: GameName = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        check_output_file("OUTPUT", self.output)


def main(argv: list[str]) -> None:
    config = parse(ExportConfig, argv, command="export")
    spare_files(config.overwrite, config.output)
    _, loaded = load_game(config.game, [config.net], DEFAULT_GAME)
    want_inference("torch")
    net = load_net(config.net.text, loaded, "cpu")
    if not isinstance(net, TorchNet):
        raise InvalidSetting(f"{config.net} is not a network of torch: only those can be written as ONNX")
    card = {name: value for name, value in net.card.items() if name != "search"}
    content, error = to_onnx(net, loaded.game, card)
    atomic_write(config.output, content)
    planes, height, width = loaded.game.observation_shape
    print(
        f"{config.output} is written, {len(content) / 1e6:.1f} MB; in {NUM_CHECKED:,} positions it differs from torch"
    )
    print(
        f"by {error:.1g} at most. It takes observations float32[n, {planes}, {height}, {width}] and gives policy_logits"
    )
    print(f"[n, {loaded.game.num_actions}] and values [n], both for the player to move.")
