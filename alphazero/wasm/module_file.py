"""From an object of LLVM's to a WebAssembly module, without a linker.

The object of a single compilation needs nothing from elsewhere. LLVM has written the numbers of functions and the
addresses of data into it as if the data began at address 0, which is where they stay. What lacks is what a linker adds
to the file: a memory, a stack pointer and exports, in place of imports. Names of sections and fields:
https://webassembly.github.io/spec/core/binary/modules.html, and for the custom section `linking`
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from alphazero.errors import GameError

PAGE = 1 << 16
FIRST_ADDRESS = 1 << 20
"""The constants of a module lie at address 0 and above, its stack grows down from here, and its arrays begin here."""
STACK_BYTES = 1 << 18
HEADER = b"\0asm\1\0\0\0"
CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, START, ELEMENT, CODE, DATA, DATA_COUNT = range(13)
ORDER = (TYPE, FUNCTION, MEMORY, GLOBAL, EXPORT, DATA_COUNT, CODE, DATA)
FUNCTION_KIND, TABLE_KIND, MEMORY_KIND, GLOBAL_KIND = range(4)
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

    def take(self, count: int) -> bytes:
        self.at += count
        return self.content[self.at - count : self.at]

    def expect(self, wanted: bytes) -> None:
        """Reads bytes that must come next; raises ValueError if others do."""
        found = self.take(len(wanted))
        if found != wanted:
            raise ValueError(f"an object of LLVM has {found!r} in place of {wanted!r}")

    def name(self) -> str:
        return self.take(self.number()).decode()

    @property
    def ended(self) -> bool:
        return self.at >= len(self.content)


def make_module(target: bytes, exports: Sequence[str], memory_bytes: int) -> bytes:
    """The module of an object file; it exports the functions of these names, and its `memory`.

    The memory has `memory_bytes` of arrays from FIRST_ADDRESS on. Raises GameError if the object calls functions that
    it does not have, such as the exponential function, or if its constants leave no room for the stack.
    """
    sections, custom = dict[int, bytes](), dict[str, bytes]()
    for kind, content in _sections(target):
        if kind == CUSTOM:
            reader = _Reader(content)
            name = reader.name()
            custom[name] = content[reader.at :]
        else:
            sections[kind] = content
    _check_imports(sections.pop(IMPORT))
    constants = _end_of_data(sections.get(DATA, b"\0"))
    if constants > FIRST_ADDRESS - STACK_BYTES:
        raise GameError(
            f"the tables of the rules take {constants} bytes; {FIRST_ADDRESS - STACK_BYTES} are allowed in a web page"
        )
    functions = _functions(custom["linking"])
    pages = -(-(FIRST_ADDRESS + memory_bytes) // PAGE)
    sections[MEMORY] = _number(1) + b"\0" + _number(pages)
    # a mutable i32, which the object knows as number 0: the stack pointer
    sections[GLOBAL] = _number(1) + b"\x7f\1\x41" + _signed(FIRST_ADDRESS) + b"\x0b"
    entries = [_text(name) + bytes([FUNCTION_KIND]) + _number(functions[name]) for name in exports]
    entries.append(_text("memory") + bytes([MEMORY_KIND]) + _number(0))
    sections[EXPORT] = _number(len(entries)) + b"".join(entries)
    body = [bytes([kind]) + _number(len(sections[kind])) + sections[kind] for kind in ORDER if kind in sections]
    return HEADER + b"".join(body)


def _sections(target: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(target)
    reader.expect(HEADER)
    while not reader.ended:
        kind = reader.take(1)[0]
        yield kind, reader.take(reader.number())


def _check_imports(content: bytes) -> None:
    """Raises GameError for an import that is neither the memory nor the stack pointer, which the module gets itself."""
    reader, missing = _Reader(content), list[str]()
    for _ in range(reader.number()):
        reader.name()
        name, kind = reader.name(), reader.take(1)[0]
        if kind == FUNCTION_KIND:
            reader.number()
        elif kind == GLOBAL_KIND:
            reader.take(2)
        else:
            reader.take(kind == TABLE_KIND)
            for _ in range(1 + (reader.number() & 1)):
                reader.number()
        if name not in ("__linear_memory", "__stack_pointer"):
            missing.append(name)
    if missing:
        raise GameError(f"a web page has no function {', '.join(missing)}, which the rules use: write them without it")


def _end_of_data(content: bytes) -> int:
    """The address after the last constant."""
    reader, end = _Reader(content), 0
    for _ in range(reader.number()):
        reader.expect(b"\0\x41")
        start = reader.number()  # below 2^31, and LLVM writes five bytes, so that the sign is 0
        reader.expect(b"\x0b")
        size = reader.number()
        reader.take(size)
        end = max(end, start + size)
    return end


def _functions(content: bytes) -> dict[str, int]:
    """The functions of the object by name, from its table of symbols."""
    reader, found = _Reader(content), dict[str, int]()
    reader.expect(b"\2")  # the version of the format
    while not reader.ended:
        kind, size = reader.take(1)[0], reader.number()
        if kind != SYMBOL_TABLE:
            reader.take(size)
            continue
        for _ in range(reader.number()):
            what, flags = reader.take(1)[0], reader.number()
            if what == 1:  # data
                reader.name()
                if not flags & UNDEFINED:
                    for _ in range(3):
                        reader.number()
            elif what == 3:  # a section
                reader.number()
            else:
                index = reader.number()
                if not flags & UNDEFINED or flags & EXPLICIT_NAME:
                    name = reader.name()
                    if what == FUNCTION_KIND:
                        found[name] = index
    return found


def _number(value: int) -> bytes:
    """An unsigned number in LEB128."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _signed(value: int) -> bytes:
    """A number that is not negative, whose last byte has a bit for the sign."""
    unsigned = _number(value)
    return unsigned if unsigned[-1] < 64 else unsigned[:-1] + bytes([unsigned[-1] | 128, 0])


def _text(name: str) -> bytes:
    return _number(len(name)) + name.encode()
