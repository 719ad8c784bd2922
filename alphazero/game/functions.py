"""Compiled functions made anew with other functions inside: how one loop serves every game.

A kernel is written once, as a template that calls the rules by name (`step`, `legal`). Three steps make it one game's:

1. `bound` copies the template and points its global names to the game's own functions.
2. `rebuilt` copies every function that the result calls, and what these call in turn. It hands each copy to a
   compiler: numba's for the processor, numba's for CUDA, or none, which gives plain Python (`plain`).
3. `fingerprint` names the result by its code, the code of all that it calls, and all constants. Compiled code is kept
   on disk under that name.
"""

from __future__ import annotations

import enum
import hashlib
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba import types as numba_types

from alphazero.game.rules import Rules

NUMBAS_OWN = {*sys.stdlib_module_names, "llvmlite", "numba", "numpy", "scipy"}
"""Packages whose functions numba knows, as they are."""


def bound(template: Callable[..., Any], names: dict[str, Any]) -> types.FunctionType:
    """A copy of the template whose global names lead to one game's functions."""
    scope = template.__globals__ | names  # type: ignore[attr-defined]
    return types.FunctionType(template.__code__, scope, template.__name__)


def with_callees(
    kernel: types.FunctionType, compiled: Callable[[types.FunctionType], Any], made: dict[Callable[..., Any], Any]
) -> Any:
    """The kernel, itself not compiled, in which `compiled` has made all that it calls; `made` as in `rebuilt`."""
    return rebuilt(kernel, lambda part: part if part.__code__ is kernel.__code__ else compiled(part), made)


def for_processor(function: types.FunctionType, counted: bool) -> Callable[..., Any]:
    """The function compiled for kernels to call; with `counted` it counts references to arrays, and may make new ones.

    Code that is loaded from disk is linked by name, so the name must say all that went into the code: else two games
    made by one factory, compiled by two programs, would call each other's rules. Python cannot call the function: the
    code for that takes long to compile.
    """
    function.__qualname__ = f"{function.__name__}_{'counted' if counted else 'bare'}_{fingerprint(function)}"
    # but C can: rules that hold functions in variables call them so, and without that code LLVM ends the process
    return njit(nogil=True, _nrt=counted, no_cpython_wrapper=True)(function)


def plain(function: Callable[..., Any], kept: Mapping[Callable[..., Any], Any] = MappingProxyType({})) -> Any:
    """The plain Python version of a compiled function, with everything it calls made plain too, but for `kept`."""
    return rebuilt(function, lambda source: source, dict(kept))


def rebuilt(value: Any, compiled: Callable[[types.FunctionType], Any], made: dict[Callable[..., Any], Any]) -> Any:
    """A copy of a function that `compiled` has made, in which all functions that it calls are such copies, too.

    `made` holds the copies by source: those in it are used, new ones are added. Tuples are searched for functions; any
    other value stays as it is.
    """
    if type(value) is tuple:
        return tuple(rebuilt(item, compiled, made) for item in value)
    source = getattr(value, "py_func", value)
    if not isinstance(source, types.FunctionType):
        return value
    if source in made:
        return made[source]
    # its own globals and closure, so that the names of compiled helpers lead to the plain ones
    scope = dict(source.__globals__)
    cells = tuple(types.CellType() for _ in source.__closure__ or ())
    copy = types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__, cells or None)
    copy.__kwdefaults__ = source.__kwdefaults__
    made[source] = copy  # before what it calls, which may be itself
    for cell, original in zip(cells, source.__closure__ or (), strict=True):
        cell.cell_contents = rebuilt(original.cell_contents, compiled, made)
    scope |= _rebuilt_members(scope, _names(source.__code__), compiled, made)
    made[source] = compiled(copy)
    for name, member in scope.items():
        if member is copy:  # it calls itself
            scope[name] = made[source]
    return made[source]


def _rebuilt_members(
    scope: Mapping[str, Any],
    names: list[str],
    compiled: Callable[[types.FunctionType], Any],
    made: dict[Callable[..., Any], Any],
    above: tuple[types.ModuleType, ...] = (),
) -> dict[str, Any]:
    """These names with their values rebuilt, modules by copies; numba's own modules and those `above` stay."""
    found: dict[str, Any] = {}
    for name in names:
        value = scope.get(name)
        if isinstance(value, types.ModuleType):
            if not _is_numbas_own(value) and value not in above:  # modules may lead to each other
                found[name] = types.ModuleType(value.__name__)
                members = _rebuilt_members(vars(value), names, compiled, made, (*above, value))
                vars(found[name]).update(vars(value) | members)
        elif value is not None:
            found[name] = rebuilt(value, compiled, made)
    return found


def _is_numbas_own(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] in NUMBAS_OWN


def recursive(value: Any, above: tuple[types.FunctionType, ...] = (), done: set[Any] | None = None) -> bool:
    """The function, or one that it calls, calls itself or one of those `above` it; a tuple's items are searched.

    Functions in `done` do not.
    """
    done = set() if done is None else done
    if type(value) is tuple:
        return any(recursive(item, above, done) for item in value)
    source = getattr(value, "py_func", value)
    if not isinstance(source, types.FunctionType) or source in done:
        return False
    reached = [value for _, value in _members(source.__globals__, _names(source.__code__))]
    reached += [cell.cell_contents for cell in source.__closure__ or ()]
    found = source in above or any(recursive(item, (*above, source), done) for item in reached)
    done |= set() if found else {source}
    return found


def _members(
    scope: Mapping[str, Any], names: list[str], above: tuple[types.ModuleType, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """These names and their values, also as members of modules, but not of those `above` or that numba knows."""
    for name in names:
        value = scope.get(name)
        if isinstance(value, types.ModuleType):
            if not _is_numbas_own(value) and value not in above:  # modules may lead to each other
                yield from _members(vars(value), names, (*above, value))
        elif value is not None:
            yield name, value


def _names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return names


def fingerprint(*functions: Callable[..., Any] | None) -> str:
    """A name for what the functions compute: their code and that of all they call, with every constant used.

    numba's own cache looks only at the date of one source file. It misses a changed helper or constant in another
    file, and takes two games made by one factory for the same.
    """
    digest = hashlib.sha256()
    seen: dict[int, int] = {}
    for function in functions:
        _digest_value(digest, function, seen)
    return digest.hexdigest()[:20]


def _digest_value(digest: Any, value: Any, seen: dict[int, int]) -> None:
    value = getattr(value, "_dispatcher", value)  # of what @vectorize makes
    source = getattr(value, "py_func", getattr(value, "_defn", value))  # of a compiled function, or of an intrinsic
    if isinstance(source, types.FunctionType):
        if id(source) in seen:
            digest.update(b"again%d" % seen[id(source)])
            return
        seen[id(source)] = len(seen)
        # what numba keeps leads back to the module by its name, under which another program may not find it
        digest.update(f"{source.__module__}".encode())
        _digest_code(digest, source.__code__)
        for name in _names(source.__code__):
            if name in source.__globals__:
                digest.update(name.encode())
                value = source.__globals__[name]
                _digest_value(digest, value, seen)
                if isinstance(value, types.ModuleType) and not _is_numbas_own(value):
                    for member, item in _members(vars(value), _names(source.__code__)):
                        digest.update(member.encode())
                        _digest_value(digest, item, seen)
        for cell in source.__closure__ or ():
            _digest_value(digest, cell.cell_contents, seen)
        _digest_value(digest, (source.__defaults__, sorted((source.__kwdefaults__ or {}).items())), seen)
    elif isinstance(value, np.ndarray):
        kind = value.dtype.descr if value.dtype.names else value.dtype.str
        digest.update(repr((kind, value.shape)).encode() + value.tobytes())
    elif isinstance(value, tuple | list):
        digest.update(b"(%d" % len(value) + _fields_of(value))
        for item in value:
            _digest_value(digest, item, seen)
    elif isinstance(value, enum.EnumMeta):
        digest.update(repr(list(value.__members__.items())).encode())
    elif isinstance(value, ir.Type):
        digest.update(str(value).encode())
    elif isinstance(value, numba_types.Type):
        digest.update(_text_of(value))
    elif isinstance(value, types.ModuleType | type) or callable(value):
        digest.update(getattr(value, "__name__", repr(type(value))).encode() + _fields_of(value))
    else:
        digest.update(f"{type(value).__name__}:".encode() + _text_of(value))


def _fields_of(value: Any) -> bytes:
    """The names of a named tuple's fields, or of those of its class."""
    return repr(value._fields).encode() if hasattr(value, "_fields") else b""


def _text_of(value: Any) -> bytes:
    """The value as text, without the places of objects in memory, which are others in every process."""
    return re.sub(" at 0x[0-9a-fA-F]+>", ">", repr(value)).encode()


def _digest_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code + repr(code.co_names).encode() + repr(code.co_varnames).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _digest_code(digest, constant)
        else:
            digest.update(f"{type(constant).__name__}:{constant!r}".encode())


def rule_functions(rules: Rules) -> dict[str, Callable[..., Any] | None]:
    """The rules by name, in the order of their declaration; those of few games only where a game has them."""
    found = {field.name: getattr(rules, field.name) for field in fields(rules)}
    return {
        name: rule for name, rule in found.items() if rule is not None or name not in ("chance", "settle", "returns")
    }


def rules_fingerprint(rules: Rules) -> str:
    """A name for what the rules compute, whatever the module is called that they lie in."""

    def without_module(function: types.FunctionType) -> types.FunctionType:
        function.__module__ = ""
        return function

    made: dict[Callable[..., Any], Any] = {}
    return fingerprint(*(rebuilt(rule, without_module, made) for rule in rule_functions(rules).values()))
