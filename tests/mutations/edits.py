"""What a mutation does to the code of a function: edits that find their place by the structure of the code.

Each takes the syntax tree of the function and changes it. An edit that fits no place, or more than one, raises
ValueError.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

Edit = Callable[[ast.AST], None]

_BLOCKS = "body", "orelse", "finalbody"


def never(word: str) -> Edit:
    """The one condition with this word (a name, an attribute, a text, a number) never holds."""
    return lambda code: _settle(code, word, False)


def always(word: str) -> Edit:
    """The one condition with this word always holds."""
    return lambda code: _settle(code, word, True)


def without(word: str) -> Edit:
    """The one statement with this word, which holds no other statements, is gone."""

    def edit(code: ast.AST) -> None:
        blocks = [block for node in ast.walk(code) for name in _BLOCKS if type(block := getattr(node, name, 0)) is list]
        found = [
            (block, i)
            for block in blocks
            for i, statement in enumerate(block)
            if not hasattr(statement, "body") and word in _words(statement)
        ]
        block, i = _only(found, word)
        block[i] = ast.Pass()

    return edit


def instead(old: str, new: str) -> Edit:
    """The one expression, statement or `except` that is the code `old` becomes `new`; in `old`, `...` stands for
    anything, for any arguments of a call and for any statements."""
    pattern, replacement = _part(old), _part(new)
    if isinstance(replacement, ast.stmt) and isinstance(pattern, ast.expr):
        pattern = ast.Expr(pattern)

    def edit(code: ast.AST) -> None:
        node, field, i = _only([place for place in _places(code) if _fits(pattern, _at(*place))], old)
        if isinstance(getattr(node, field), list):
            getattr(node, field)[i] = replacement
        else:
            setattr(node, field, replacement)

    return edit


def reworded(old: str, new: str) -> Edit:
    """The one text that holds the text `old` has `new` in its place."""

    def edit(code: ast.AST) -> None:
        texts = [node for node in ast.walk(code) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        text = _only([text for text in texts if old in text.value], old)
        text.value = text.value.replace(old, new)

    return edit


def function_in(tree: ast.Module, name: str) -> ast.AST:
    """The function or class of this qualified name, such as `RunFolder.commit`; the module, without a name."""
    found: ast.AST = tree
    for part in filter(None, name.split(".")):
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        inside = ast.walk(found) if isinstance(found, ast.Module) else ast.iter_child_nodes(found)
        found = _only([node for node in inside if isinstance(node, kinds) and node.name == part], name)
    return found


def _settle(code: ast.AST, word: str, value: bool) -> None:
    places = [
        place
        for place in _places(code)
        if place[1] in ("test", "ifs") and word in _words(_at(*place))
    ]  # fmt: skip
    node, field, i = _only(places, word)
    if field == "ifs":
        node.ifs[i] = ast.Constant(value)
    else:
        node.test = ast.Constant(value)


def _only(found: list[Any], what: str) -> Any:
    if len(found) != 1:
        raise ValueError(f"{what!r} fits {len(found)} places, not one")
    return found[0]


def _part(text: str) -> ast.AST:
    if text.startswith("except"):
        return _part(f"try: pass\n{text}").handlers[0]
    statement = ast.parse(text).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def _places(code: ast.AST) -> Iterator[tuple[ast.AST, str, int]]:
    """Each node below `code`, by the node, the field and the place in it where it stands."""
    for node in ast.walk(code):
        for name, value in ast.iter_fields(node):
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    yield node, name, i


def _at(node: ast.AST, field: str, i: int) -> ast.AST:
    value = getattr(node, field)
    return value[i] if isinstance(value, list) else value


def _fits(pattern: Any, node: Any) -> bool:
    if _is_dots(pattern):
        return True
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list):
        anything = len(pattern) == 1 and _is_dots(pattern[0])
        return anything or (len(pattern) == len(node) and all(map(_fits, pattern, node)))
    if not isinstance(pattern, ast.AST):
        return pattern == node
    left_out = ["ctx"]
    if isinstance(pattern, ast.Call) and len(pattern.args) == 1 and _is_dots(pattern.args[0]):
        left_out.append("keywords")
    return all(_fits(value, getattr(node, name)) for name, value in ast.iter_fields(pattern) if name not in left_out)


def _is_dots(pattern: Any) -> bool:
    return isinstance(pattern, ast.Constant | ast.Expr) and (pattern.value is ... or _is_dots(pattern.value))


def _words(node: ast.AST) -> set[str]:
    words = set()
    for part in ast.walk(node):
        named = (value for name, value in ast.iter_fields(part) if name in ("id", "attr", "value"))
        words |= {str(value) for value in named if isinstance(value, str | int)}
    return words
