"""From an object of LLVM's to a WebAssembly module, without a linker.

The object of a single compilation needs nothing from elsewhere. LLVM has written the numbers of functions and the
addresses of data into it as if the data began at address 0, which is where they stay. What lacks is what a linker adds
to the file: a memory, a stack pointer and exports, in place of imports. Names of sections and fields:
https://webassembly.github.io/spec/core/binary/modules.html, and for the custom section `linking`
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from alphazero.errors import GameError

PAGE = 1 << 16
FIRST_ADDRESS = 1 << 20
"""The constants of a module lie at address 0 and above, its stack grows down from here, and its arrays begin here."""
STACK_BYTES = 1 << 18
HEADER = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT = range(13)
ORDER = (TYPE, FUNCTION, MEMORY, GLOBAL, EXPORT, DATA_COUNT, CODE, DATA)
FUNCTION_KIND, MEMORY_KIND = 0, 2
MISSING = re.compile(rb"\x03env.([^\0-\3]+)[\0\1]", re.DOTALL)
"""The name of a function or of a table of functions among the imports, whose module is called `env`."""
SYMBOL_TABLE = 8
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40


class _Reader:
    """Reads numbers and names one after another."""

    def __init__(self, content: bytes):
        self.content, self.at = content, 0

    def number(self) -> int:
        """An unsigned number in LEB128."""
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def part(self) -> bytes:
        """Bytes after their number: a name, or the content of a section."""
        count = self.number()
        self.at += count
        return self.content[self.at - count : self.at]

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """Kinds and contents up to the end."""
        while self.at < len(self.content):
            yield self.number(), self.part()


def make_module(target: bytes, exports: Sequence[str], memory_bytes: int) -> bytes:
    """The module of an object file; it exports the functions of these names, and its `memory`.

    The memory has `memory_bytes` of arrays from FIRST_ADDRESS on. Raises GameError if the object calls functions that
    it does not have, such as the exponential function, or if its constants leave no room for the stack.
    """
    sections, custom = dict[int, bytes](), dict[bytes, bytes]()
    for kind, content in _Reader(target[len(HEADER) :]).parts():
        if kind == CUSTOM:
            reader = _Reader(content)
            name = reader.part()
            custom[name] = content[reader.at :]
        else:
            sections[kind] = content
    if missing := MISSING.findall(sections[IMPORT]):
        names = b", ".join(missing).decode()
        raise GameError(f"a web page has no function {names}, which the rules use: write them without it")
    # a constant has a head of its own, about as long as the gap to the next one
    if (constants := len(sections.get(DATA, b""))) > FIRST_ADDRESS - STACK_BYTES:
        raise GameError(
            f"the tables of the rules take {constants} bytes; {FIRST_ADDRESS - STACK_BYTES} are allowed in a web page"
        )
    functions = _functions(custom[b"linking"])
    pages = -(-(FIRST_ADDRESS + memory_bytes) // PAGE)
    sections[MEMORY] = _number(1) + b"\0" + _number(pages)
    # a mutable i32, which the object knows as number 0: the stack pointer; a signed number, so there is a byte more
    *first, last = _number(FIRST_ADDRESS)
    sections[GLOBAL] = _number(1) + b"\x7f\1\x41" + bytes([*first, last | 128, 0]) + b"\x0b"
    entries = [_part(name.encode()) + bytes([FUNCTION_KIND]) + _number(functions[name]) for name in exports]
    entries.append(_part(b"memory") + bytes([MEMORY_KIND]) + _number(0))
    sections[EXPORT] = _number(len(entries)) + b"".join(entries)
    return HEADER + b"".join(bytes([kind]) + _part(sections[kind]) for kind in ORDER if kind in sections)


def _functions(content: bytes) -> dict[str, int]:
    """The functions of the object by name, from its table of symbols."""
    reader = _Reader(content)
    if (version := reader.number()) != 2:
        raise ValueError(f"an object of LLVM has symbols of version {version} in place of 2")
    found = dict[str, int]()
    symbols = _Reader(dict(reader.parts())[SYMBOL_TABLE])
    for _ in range(symbols.number()):
        kind, flags = symbols.number(), symbols.number()
        if kind == 1:  # data: a name, and where it is
            symbols.part()
            for _ in range(0 if flags & UNDEFINED else 3):
                symbols.number()
            continue
        index = symbols.number()
        if kind != 3 and (not flags & UNDEFINED or flags & EXPLICIT_NAME):  # a section has no name
            name = symbols.part()
            if kind == FUNCTION_KIND:
                found[name.decode()] = index
    return found


def _number(value: int) -> bytes:
    """An unsigned number in LEB128."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _part(content: bytes) -> bytes:
    return _number(len(content)) + content
