"""Networks for use elsewhere: an ONNX file with the weights, checked against torch."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import softmax

from alphazero.errors import InputError, NetError
from alphazero.game import Game
from alphazero.machine import without_warnings
from alphazero.nets.devices import usual_torch
from alphazero.nets.torch_net import TorchNet

NUM_CHECKED = 1000
"""Positions in which the file's answers are compared with torch's."""
TOLERANCE = 1e-4
"""The largest difference allowed between the file and torch in float32: of the probabilities of legal actions, of the
values, and of the logits, these in proportion to a logit beyond 1, where float32 itself rounds by as much."""


@usual_torch()
def to_onnx(net: TorchNet, game: Game, card: Mapping[str, Any]) -> tuple[bytes, float]:
    """The contents of an ONNX file, and the largest difference from torch in NUM_CHECKED positions of random games.

    Input `observations float32[n, P, H, W]`, outputs `policy_logits float32[n, A]` and `values float32[n]`, or
    `float32[n, V]`: see `Game.value_shape`. Both are for the player to move. The file's metadata has the game's name
    and the card. Raises InputError where the extra is not installed, and NetError where the module cannot be converted
    or the file's answers differ by more than TOLERANCE.
    """
    try:
        onnxruntime, *_ = map(importlib.import_module, ("onnxruntime", "onnx", "onnxscript"))
    except ImportError as error:
        raise InputError(f"{error.name} is not installed: pip install onnx onnxruntime onnxscript") from error
    module = net.frozen_float().cpu()
    shape = -1, *game.value_shape
    module.register_forward_hook(lambda module, given, answer: (answer[0], answer[1].reshape(shape).clamp(-1, 1)))
    observations, legal = _random_positions(game, NUM_CHECKED)
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # the converter's own log
    try:
        with without_warnings():  # it uses deprecated names itself
            program = torch.onnx.export(
                module, (torch.from_numpy(observations[:2]),), dynamo=True, verbose=False,
                input_names=["observations"], output_names=["policy_logits", "values"],
                dynamic_shapes=({0: torch.export.Dim("positions")},),
            )  # fmt: skip
    except Exception as error:
        raise NetError(f"this network cannot be written as ONNX: {_first_line(error)}") from error
    finally:
        logging.disable(before)
    assert program is not None
    model = program.model_proto
    if not model.graph.input[0].type.tensor_type.shape.dim[0].dim_param:  # the converter says nothing
        raise NetError(
            "this network cannot be written as ONNX for any number of positions, since `forward` makes a number of "
            "Python of it: write x.shape[0] for len(x), and x.flatten(1) for a view with it"
        )
    for name, value in (("game", game.name), ("card", json.dumps(card))):
        entry = model.metadata_props.add()
        entry.key, entry.value = name, value
    content: bytes = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # as of `squeeze(1)` where the size is not 1, which torch passes over
        raise NetError(f"onnxruntime refuses this network as ONNX: {_first_line(error)}") from error
    with torch.inference_mode():
        wanted = [answer.detach().numpy() for answer in module(torch.from_numpy(observations))]
    found = session.run(["policy_logits", "values"], {"observations": observations})
    largest = _largest_difference(found, wanted, legal)
    if not largest <= TOLERANCE:
        raise NetError(
            f"the ONNX file's answers differ from torch's by {largest:.2g}, which is more than {TOLERANCE:g}"
        )
    return content, largest


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _largest_difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], legal: np.ndarray) -> float:
    """The largest of the differences that TOLERANCE bounds; NaN if there is one. Answers are (logits, values)."""
    with np.errstate(invalid="ignore"):  # a module may mask illegal actions by -inf
        logits, values = (
            np.where(one == other, 0, np.abs(one - other)) for one, other in zip(found, wanted, strict=True)
        )
    policies = [softmax(np.where(legal, each[0].astype(np.float64), -np.inf), axis=1) for each in (found, wanted)]
    logits = logits / np.maximum(np.abs(wanted[0]), 1)
    return float(np.max([each.max() for each in (np.abs(policies[0] - policies[1]), values, logits)]))


def _random_positions(game: Game, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`float32[count, P, H, W]` and `bool[count, A]`: observations and legal actions in random games, in turn."""
    rng, position, found = np.random.default_rng(0), game.start(), list[tuple[np.ndarray, np.ndarray]]()
    while len(found) < count:
        if not position.chances:
            found.append((position.observation, position.legal_mask))
        position = position.play(int(rng.choice(position.legal_actions)))
        if position.terminal:
            position = game.start()
    observations, legal = zip(*found, strict=True)
    return np.array(observations, np.float32), np.array(legal, bool)
