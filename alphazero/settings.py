"""Checked dataclasses of settings: from and to plain values, and how two sets of them differ."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, TypeVar, get_type_hints

import numpy as np

from alphazero.errors import InvalidSetting, quote, shorten
from alphazero.invocation import option
from alphazero.storage.files import to_json
from alphazero.storage.schema import check

Config = TypeVar("Config")

RETIRED: dict[str, dict[str, Any]] = {"SearchConfig": {"root_temperature": 1.0}}
"""Settings that are gone, by the class that had them, with the value at which they did nothing.

Cards and run folders written before hold them; they are dropped where they have that value.
"""


def check_ranges(settings: Any, what: str = "", **limits: tuple[float, float]) -> None:
    """Raises InvalidSetting if a field of `settings` is outside its limits `(lowest, highest)`, both allowed.

    `what` opens the sentence, as in "search setting". Without it a field is named as the user gives it
    (`invocation.option`), and so is a field of a group, whose name ends with a dot, as in "gate.". A field of whole
    numbers takes no others. Every element of a tuple is checked; None is not where the field may be None. A field that
    is true or false is checked without limits.
    """

    def title(name: str) -> str:
        return f"{what} {name}" if what and not what.endswith(".") else option(what + name)

    for field in fields(settings):
        if field.type == "bool" and not isinstance(value := getattr(settings, field.name), bool | np.bool_):
            raise InvalidSetting(f"{title(field.name)} must be True or False, not {quote(value)}")
    types = {field.name: str(field.type) for field in fields(settings)}
    for name, (lowest, highest) in limits.items():
        given = getattr(settings, name)
        if given is None and "None" in types[name]:
            continue
        for value in given if isinstance(given, tuple) else (given,):
            check_range(title(name), value, lowest, highest, whole=re.search(r"\bint\b", types[name]) is not None)


def check_range(name: str, value: Any, lowest: float, highest: float = math.inf, *, whole: bool = True) -> None:
    """Raises InvalidSetting if `value` is no number from `lowest` to `highest`, or no whole one where that is wanted.

    `name` opens the sentence. `math.inf` is no limit.
    """
    allowed = f"be {_show(lowest)} or more"
    if highest < math.inf:
        allowed = f"lie between {_show(lowest)} and {_show(highest)}"
    number = isinstance(value, Real) and not isinstance(value, bool)
    if number and lowest <= value <= highest:  # nan is not
        if not whole or isinstance(value, Integral):
            return
        allowed = "be a whole number"
    raise InvalidSetting(f"{name} must {allowed}, not {quote(value)}")


def check_function(what: str, function: Any, *arguments: str) -> None:
    """Raises InvalidSetting unless `function` can be called with these arguments, named as in its documentation.

    `what` opens the sentence. A function that does not tell its arguments, as many built-in ones, is taken as it is.
    """
    wanted = f"({', '.join(arguments)})"
    if not callable(function):
        raise InvalidSetting(f"{what} must be a function of {wanted}, not {quote(function)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = shorten(f"{getattr(function, '__name__', type(function).__name__)}{signature}")
        raise InvalidSetting(f"{what} is called with {wanted}, which {given} does not take: {error}") from None


def _show(limit: float) -> str:
    return f"{int(limit):,}" if limit == round(limit) else f"{limit:g}"


def config_from_dict(config_class: type[Config], values: Any, where: str, like: Config | None = None) -> Config:
    """The settings that `asdict` made `values` from; raises InvalidSetting about what does not fit.

    A field of any type gets the type that it has in `like`, or else in the defaults. With `like`, values by name that
    are not all of that type stay a plain dict.
    """
    if not isinstance(values, Mapping):
        raise InvalidSetting(f"{where} must hold settings by name")
    retired = RETIRED.get(config_class.__name__, {})
    chosen = {name: plain(value) for name, value in values.items() if name not in retired or value != retired[name]}
    for name, kind in get_type_hints(config_class).items():
        if name not in chosen:
            continue
        given, is_free = chosen[name], kind is Any
        if is_free:
            kind = type(getattr(config_class() if like is None else like, name))
            if like is not None and isinstance(given, dict) and given.keys() - get_type_hints(kind):
                continue
        if is_dataclass(kind):
            chosen[name] = config_from_dict(kind, given, f"{where}, {name}")  # type: ignore[arg-type]
        elif is_free:
            check(kind, given, f"{where}, {name}", InvalidSetting)
    return check(config_class, chosen, where, InvalidSetting)


def plain(value: Any) -> Any:
    """The value with Python's own numbers in place of numpy's, at any depth."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([plain(item) for item in value])
    return value.item() if isinstance(value, np.generic) else value


def settings_changed(saved: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Lines such as `search.num_simulations: 64 -> 32`, one for each setting that differs."""
    before, after = flat_settings(json.loads(to_json(dict(saved)))), flat_settings(json.loads(to_json(dict(now))))
    return [
        f"{name}: {before.get(name, '(none)')} -> {after.get(name, '(none)')}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as `search.num_simulations` and the like, values as JSON; 3.0 as 3."""
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= flat_settings(value, f"{prefix}{name}.")
        else:
            is_whole = isinstance(value, float) and value.is_integer()
            flat[prefix + name] = json.dumps(int(value) if is_whole else value)
    return flat
