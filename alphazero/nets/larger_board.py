"""A network for a larger board that begins with what one for a smaller board has learned."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from alphazero.errors import NetError
from alphazero.game import Game
from alphazero.nets.resnet import ResNet


def places_of(small: int, large: int) -> np.ndarray:
    """`int64[large]`: the row of the smaller board that stands for each row of the larger one.

    Rows at the edges stand for those as far from the same edge, and a middle one for all between. Likewise for columns.
    """
    rows, half = np.arange(large), small // 2
    return np.where(rows < half, rows, np.where(rows >= large - half, rows - large + small, half))


@torch.no_grad()
def enlarge(module: ResNet, small: Game, weights: Mapping[str, Tensor], large: Game) -> None:
    """Writes the weights of a network for the game `small` into the `module` for `large`, a game on a larger board.

    Filters stay as they are. The policy of a square listens to the squares around it as the square of the smaller board
    does that is as far from the edges. Values, and actions that are no squares, take the mean of the squares that one
    of the smaller board stands for. Raises NetError where the games differ by more than the board's size.
    """
    (planes, *before), (new_planes, *after) = small.observation_shape, large.observation_shape
    cells, others = before[0] * before[1], small.num_actions - before[0] * before[1]
    conv_policy = module.places is not None
    if planes != new_planes or any(new < old for new, old in zip(after, before, strict=True)):
        raise NetError(f"{large.name} must have the planes of {small.name}, on a board that is no smaller")
    if not conv_policy and (others < 0 or large.num_actions - after[0] * after[1] != others):
        raise NetError(f"the actions of {small.name} and {large.name} must be squares, and as many others behind them")
    rows, columns = (places_of(old, new) for old, new in zip(before, after, strict=True))
    squares = (rows[:, None] * before[1] + columns).ravel()  # what each of the larger board comes from
    part = torch.tensor(1.0 / np.bincount(squares, minlength=cells)[squares], dtype=torch.float32)

    def spread(old: Tensor) -> Tensor:
        """Weights `[n, channels * cells]` for the larger board, where equal squares share one's weight."""
        return (old.reshape(len(old), old.shape[1] // cells, cells)[:, :, squares] * part).flatten(1)

    found = dict(weights)
    found["value_hidden.weight"] = spread(weights["value_hidden.weight"])
    if not conv_policy:
        old = weights["policy.weight"]
        policy = old.new_zeros(len(squares), old.shape[1] // cells, *after)
        shaped = old[:cells].reshape(cells, -1, *before)
        for square, origin in enumerate(squares):
            # by so much the smaller board is shifted on the larger one
            down, right = square // after[1] - origin // before[1], square % after[1] - origin % before[1]
            policy[square, :, down : down + before[0], right : right + before[1]] = shaped[origin]
        found["policy.weight"] = torch.cat([policy.flatten(1), spread(old[cells:])])
        bias = weights["policy.bias"]
        found["policy.bias"] = torch.cat([bias[torch.from_numpy(squares)], bias[cells:]])
    mine = module.state_dict()
    if mine.keys() != found.keys() or any(mine[name].shape != found[name].shape for name in mine):
        raise NetError(f"the networks of {small.name} and {large.name} must have the same sizes")
    module.load_state_dict(found)
