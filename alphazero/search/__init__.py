"""Monte Carlo tree search. The package can be called: `az.search(position, net)` searches one position.

`help(az.search.__call__)` tells its arguments.
A package and a function cannot share a name: whoever imported `alphazero.search.mcts` would put the package in the
function's place. So the package is the function as well.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alphazero.game import Position
    from alphazero.nets.neural_net import NeuralNet
    from alphazero.search.analysis import Found
    from alphazero.search.mcts import Evaluate, SearchConfig


class _CallablePackage(ModuleType):
    """The type of this package."""

    def __call__(
        self,
        position: Position,
        net: NeuralNet | Evaluate,
        simulations: int | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
    ) -> Found:
        """Searches one position with a network or any `evaluate` function of `mcts`; PUCT without noise by default.

        `alphazero.search.analysis.search_position` tells the arguments, and has an example.
        """
        from alphazero.search.analysis import search_position

        return search_position(position, net, simulations, config, seed)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, and pickles that other processes read, are the package itself."""
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallablePackage
