"""Monte Carlo tree search. The package can be called: `az.search(position, net)` searches one position.

A package and a function cannot share a name: whoever imported `alphazero.search.mcts` would put the package in the
function's place. So the package is the function as well.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alphazero.search.analysis import Found


class _CallablePackage(ModuleType):
    """The type of this package."""

    def __call__(self, *arguments: Any, **settings: Any) -> Found:
        from alphazero.search.analysis import search_position

        return search_position(*arguments, **settings)


sys.modules[__name__].__class__ = _CallablePackage
