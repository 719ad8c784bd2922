"""Monte Carlo tree search. The package can be called: `az.search(position, net)` searches one position.

A package and a function cannot share a name: whoever imported `alphazero.search.mcts` would put the package in the
function's place. So the package is the function as well.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """The type of this package."""

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """`alphazero.search.analysis.search_position`, which tells the arguments and has an example."""
        from alphazero.search.analysis import search_position

        return search_position(*arguments, **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, and pickles that other processes read, are the package itself."""
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallablePackage
