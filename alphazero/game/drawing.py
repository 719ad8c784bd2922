"""Draws a position as SVG, from its `Board` and `View` alone; a policy and values can be marked on it.

A picture has its own background and no style sheet, so it looks the same on light and dark pages. It is small, because
stones of one colour share one path: each stone is a stroke of length zero with round ends.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from alphazero.game.board import Board, Cell, Click, Piece, Point, View, center

SCALE = 48
"""Pixels of a cell."""
MARGIN = 0.3
"""Space between the cells and the edge of the panel, in cells."""
FOOTER = 0.8
"""Height of the line below the cells, in cells."""
STATUS = 2.4
"""Width of the text that says who moves, in cells."""
GAP = 0.15
"""Space between buttons, in cells."""
HOLE = 0.82
"""Diameter of holes and stones, as a share of their cell."""
MOST_BUTTONS = 6
LEAST_SHARE = 0.005
"""Actions with a smaller share of the policy get no mark."""
INK = "#1c2430"
PLAYERS = ("first player", "second player")

TERMINAL_COLORS = re.compile(r"\x1b\[[0-9;]*m")
FORBIDDEN = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Layer = tuple[float, str, str]
"""A size as a share of the cell, a colour, and `round` or `square`."""
Numbers = Mapping[int, float] | Sequence[float] | np.ndarray


def draw(
    board: Board,
    view: View,
    title: str,
    policy: Numbers | None = None,
    values: Numbers | None = None,
    *,
    hints: bool = False,
    last: bool = True,
) -> str:
    """The picture as SVG; `policy` and `values` are as in `Position.svg`."""
    picture = _Picture(board)
    marks = _marks(view, policy, values)
    body = [
        picture.strokes(),
        picture.winning(view.winning),
        picture.pieces(view.pieces),
        picture.shading(marks),
        picture.hints(view.clicks if hints else ()),
        picture.rings(view.last if last else (), board.colors.mark, 0.05),
        picture.numbers(marks),
        picture.labels(),
    ]
    if not board.cells:
        body.append(picture.text(view.text))
    body.append(picture.footer(view, marks))
    return picture.document(f"{title}: {_status(view)}", picture.cells(view), body)


@dataclass(frozen=True)
class Mark:
    """The shading and the number at one action."""

    click: Click
    share: float
    """The share of the policy, scaled so that the largest is 1."""
    text: str


def _marks(view: View, policy: Numbers | None, values: Numbers | None) -> list[Mark]:
    """The marks of all actions that get one, in ascending order of their shares, and of their values in equal ones."""
    if policy is None and values is None:
        return []
    first = {click.action: click for click in reversed(view.clicks)}
    shares = _by_action(policy, first)
    total, largest = sum(shares.values()), max(shares.values(), default=0.0)
    worth = _by_action(values, first)
    marks = []
    # the best is drawn last, on top
    for action in sorted(first, key=lambda action: (shares.get(action, 0.0), worth.get(action, 0.0))):
        share = shares.get(action, 0.0) / total if total > 0 else 0.0
        if policy is not None and share < LEAST_SHARE:
            continue
        text = f"{worth[action]:+.2f}" if action in worth else f"{share:.0%}" if values is None else ""
        marks.append(Mark(first[action], share * total / largest if share else 0.0, text))
    return marks


def _by_action(numbers: Numbers | None, legal: Iterable[int]) -> dict[int, float]:
    """The finite numbers of legal actions."""
    if numbers is None:
        return {}
    found = {a: float(numbers[a]) for a in legal if not isinstance(numbers, Mapping) or a in numbers}
    return {action: number for action, number in found.items() if math.isfinite(number)}


def _status(view: View) -> str:
    if view.outcome is None:
        return f"{PLAYERS[view.to_play]} to move"
    return "draw" if view.outcome == 0 else f"{PLAYERS[view.outcome < 0]} has won"


def _number(length: float) -> str:
    """A length in pixels, with at most one decimal."""
    return f"{length:.1f}".rstrip("0").rstrip(".").replace("-0.", "-.") or "0"


def _path(points: Iterable[Point]) -> str:
    """The data of a path from point to point, in few characters."""
    pixels = [(round(x * SCALE, 1), round(y * SCALE, 1)) for x, y in points]
    words = ["M{} {}".format(*map(_number, pixels[0]))]
    for (x, y), (to_x, to_y) in itertools.pairwise(pixels):
        if to_y == y:
            words.append(f"h{_number(to_x - x)}")
        elif to_x == x:
            words.append(f"v{_number(to_y - y)}")
        else:
            words.append(f"L{_number(to_x)} {_number(to_y)}")
    return "".join(words)


def _words(text: str) -> str:
    """Text for XML, without terminal colours and control characters, which XML forbids."""
    return escape(FORBIDDEN.sub("", TERMINAL_COLORS.sub("", text)))


def _tag(name: str, content: str = "", /, **attributes: object) -> str:
    """One element; underscores in the names of attributes become hyphens."""
    words = "".join(f' {key.replace("_", "-")}="{_words(str(value))}"' for key, value in attributes.items())
    return f"<{name}{words}>{content}</{name}>" if content else f"<{name}{words}/>"


class _Picture:
    """Draws the parts of one picture. Each method returns SVG, and `document` puts the parts together."""

    def __init__(self, board: Board):
        self.board = board
        self.colors = board.colors
        self.players = (board.colors.first, board.colors.second)
        self.centers = [center(cell.outline) for cell in board.cells]
        self.radii = [_inner_radius(cell.outline) for cell in board.cells]
        points = [point for cell in board.cells for point in cell.outline]
        points += [point for stroke in board.strokes for point in stroke.points]
        points += [(x + side, y + side) for x, y in (label.at for label in board.labels) for side in (-0.15, 0.15)]
        xs, ys = zip(*points, strict=True) if points else ((0.0, 4.0), (0.0, 0.0))
        self.left, self.right, self.top, self.bottom = min(xs), max(xs), min(ys), max(ys)

    # --- the board ---

    def cells(self, view: View) -> str:
        """All cells; the title of each says its name and its piece."""
        on_it = {piece.cell: piece for piece in view.pieces}
        looks: dict[str, list[str]] = {}
        for number, cell in enumerate(self.board.cells):
            piece = on_it.get(number)
            name = cell.name + (f", {_piece_name(piece)}" if piece else "")
            looks.setdefault(cell.look, []).append(
                _tag("path", _tag("title", _words(name)), d=f"{_path(cell.outline)}Z")
            )
        fills = {"plain": self.colors.cell, "shaded": self.colors.shaded, "hole": self.colors.cell}
        groups = []
        for look, paths in looks.items():
            fill = fills.get(look, "none")
            line = self.colors.line if look in ("plain", "shaded") else fill
            groups.append(_tag("g", "".join(paths), fill=fill, stroke=line, pointer_events="all"))
        holes = [number for number, cell in enumerate(self.board.cells) if cell.look == "hole"]
        return "".join(groups) + self.discs(holes, (HOLE, self.colors.shaded, "round"))

    def strokes(self) -> str:
        """The lines of the board, with one path for each width and colour."""
        paths: dict[tuple[float, str], list[str]] = {}
        for stroke in self.board.strokes:
            paths.setdefault((stroke.width, stroke.color), []).append(_path(stroke.points))
        return "".join(
            _tag("path", d="".join(lines), fill="none", stroke=getattr(self.colors, color),
                 stroke_width=_number(width * SCALE), stroke_linecap="round", stroke_linejoin="round")
            for (width, color), lines in paths.items()
        )  # fmt: skip

    def labels(self) -> str:
        """The coordinates."""
        texts = [self.words(label.at, label.text) for label in self.board.labels]
        return _tag("g", "".join(texts), fill=self.colors.text, font_size=13, text_anchor="middle") if texts else ""

    def text(self, text: str) -> str:
        """The position as text, for a game whose board has no cells."""
        lines = text.split("\n")
        spans = [
            _tag("tspan", _words(line).replace(" ", "\u00a0") or "\u00a0", x=0, y=_number((0.3 + 0.45 * row) * SCALE))
            for row, line in enumerate(lines)
        ]
        self.bottom = 0.45 * len(lines)
        self.right = max(4.0, max(map(len, lines)) * 0.22)
        return _tag("text", "".join(spans), fill=self.colors.text, font_size=14, font_family="monospace")

    # --- pieces ---

    def discs(self, cells: Sequence[int], *layers: Layer, opacity: float = 1) -> str:
        """Discs or squares in the middle of cells, in layers from the lowest up.

        All layers use one path. Its id is a checksum of its points, so two pictures on one page that have the same id
        also have the same path.
        """
        sizes: dict[float, list[str]] = {}
        for cell in cells:
            sizes.setdefault(round(self.radii[cell], 3), []).append(f"{_path([self.centers[cell]])}h0")
        drawn = []
        for radius, points in sizes.items():
            path = "".join(points)
            name = f"d{zlib.crc32(path.encode()):x}"
            content = _tag("path", **({"id": name} if len(layers) > 1 else {}), d=path)
            for share, color, cap in layers:
                width = _number(2 * share * radius * SCALE)
                drawn.append(_tag("g", content, stroke=color, stroke_width=width, stroke_linecap=cap))
                content = _tag("use", href=f"#{name}")
        faint = {"opacity": opacity} if opacity < 1 else {}
        return _tag("g", "".join(drawn), fill="none", **faint) if drawn else ""

    def pieces(self, pieces: Sequence[Piece]) -> str:
        """All pieces, grouped by owner and shape."""
        kinds: dict[tuple[int | None, str], list[int]] = {}
        for piece in pieces:
            own = "stone" if piece.player is None else self.board.shapes[piece.player]
            kinds.setdefault((piece.player, piece.shape or own), []).append(piece.cell)
        drawn = [self.shapes(shape, player, cells) for (player, shape), cells in kinds.items()]
        texts = [self.words(self.centers[piece.cell], piece.text) for piece in pieces if piece.text]
        if texts:
            drawn.append(_tag("g", "".join(texts), fill="#fff", font_size=15, text_anchor="middle", **_HALO))
        return "".join(drawn)

    def shapes(self, shape: str, player: int | None, cells: Sequence[int]) -> str:
        """The pieces of one shape and owner."""
        color = self.colors.neutral if player is None else self.players[player]
        outlines = [self.board.cells[cell].outline for cell in cells]
        if shape == "line":
            return _tag("path", d="".join(f"{_path(outline)}Z" for outline in outlines), fill=color)
        if shape == "fill":
            area = "".join(f"{_path(_shrunk(outline, 0.96))}Z" for outline in outlines)
            return _tag("path", d=area, fill=color) + self.discs(cells, *self.engraving(player, 0.35))
        if shape in ("cross", "ring"):
            lines = "".join(_figure(shape, self.centers[cell], 0.6 * self.radii[cell]) for cell in cells)
            return self.drawn(lines, color, 0.28 * self.radii[cells[0]])
        if shape == "pawn":
            pawns = "".join(_pawn(self.centers[cell], self.radii[cell]) for cell in cells)
            return _tag("path", d=pawns, fill=color, stroke=_contrast(color), stroke_width=1.5)
        rim = (HOLE, _contrast(color, 0.35), "round")
        return self.discs(cells, rim, (HOLE - 0.07, color, "round"), *self.engraving(player, 0.45))

    def engraving(self, player: int | None, share: float) -> list[Layer]:
        """A ring for the first player and a square for the second, so that nobody needs colours to tell them apart."""
        if player is None:
            return []
        color, cap = self.players[player], ("round", "square")[player]
        share *= (1.0, 0.8)[player]
        return [(share + 0.06, _contrast(color, 0.45), cap), (share - 0.06, color, cap)]

    def drawn(self, lines: str, color: str, width: float) -> str:
        """A path as a line."""
        return _tag("path", d=lines, fill="none", stroke=color, stroke_width=_number(max(1.0, width * SCALE)),
                    stroke_linecap="round")  # fmt: skip

    # --- marks ---

    def shading(self, marks: Sequence[Mark]) -> str:
        """The policy as coloured cells, or as arrows for actions of two clicks."""
        drawn = []
        for mark in marks:
            if not mark.click.cells or not mark.share:
                continue
            opacity = round(0.2 + 0.75 * mark.share, 2)
            if len(mark.click.cells) == 1:
                drawn.append(self.area(mark.click.cells[0], 0.9, self.colors.mark, opacity))
            else:
                drawn.append(self.arrow(mark.click.cells, 0.06 + 0.12 * mark.share, opacity))
        return "".join(drawn)

    def area(self, cell: int, share: float, color: str, opacity: float) -> str:
        """The inner part of a cell in one colour."""
        if self.is_round(cell):
            return self.discs([cell], (HOLE, color, "round"), opacity=opacity)
        outline = _shrunk(self.board.cells[cell].outline, share)
        return _tag("path", d=f"{_path(outline)}Z", fill=color, fill_opacity=opacity)

    def arrow(self, cells: Sequence[int], width: float, opacity: float) -> str:
        """An arrow from the first cell to the last."""
        (x, y), (to_x, to_y) = self.centers[cells[0]], self.centers[cells[-1]]
        length = math.hypot(to_x - x, to_y - y) or 1.0
        ahead = (to_x - x) / length, (to_y - y) / length
        aside = -ahead[1], ahead[0]
        start = (x + 0.3 * ahead[0], y + 0.3 * ahead[1])
        tip = (to_x + 0.1 * ahead[0], to_y + 0.1 * ahead[1])
        head = 0.12 + width

        def at(back: float, side: float, origin: Point = tip) -> Point:
            return origin[0] - back * ahead[0] + side * aside[0], origin[1] - back * ahead[1] + side * aside[1]

        half = width / 2
        outline = [
            at(0, half, start), at(1.5 * head, half), at(1.5 * head, head), tip, at(1.5 * head, -head),
            at(1.5 * head, -half), at(0, -half, start),
        ]  # fmt: skip
        return _tag("path", d=f"{_path(outline)}Z", fill=self.colors.mark, fill_opacity=opacity)

    def hints(self, clicks: Sequence[Click]) -> str:
        """A dot on the last cell of every legal action."""
        first = {click.action: click for click in reversed(clicks) if click.cells}
        cells = sorted({click.cells[-1] for click in first.values()})
        small = [cell for cell in cells if self.radii[cell] < 0.3]
        drawn = self.discs([cell for cell in cells if cell not in small], (0.28, self.colors.mark, "round"))
        return drawn + "".join(self.area(cell, 0.9, self.colors.mark, 0.6) for cell in small)

    def rings(self, cells: Sequence[int], color: str, width: float) -> str:
        """A line around each cell."""
        paths = []
        for cell in cells:
            if self.is_round(cell):
                paths.append(_figure("ring", self.centers[cell], 0.88 * self.radii[cell]))
            else:
                paths.append(f"{_path(_shrunk(self.board.cells[cell].outline, 0.88))}Z")
        return self.drawn("".join(paths), color, width) if paths else ""

    def winning(self, cells: Sequence[int]) -> str:
        """The winning cells: coloured, or with a ring around their pieces if their outline is not drawn."""
        drawn = []
        for cell in cells:
            if self.is_round(cell):
                ring = [(1.0, INK, "round"), (0.96, "#fff", "round")]
                drawn.append(self.discs([cell], *ring))
            else:
                drawn.append(self.area(cell, 1.0, self.colors.mark, 0.8))
        return "".join(drawn)

    def is_round(self, cell: int) -> bool:
        """Whether marks on the cell are round, because its outline is not drawn."""
        return self.board.cells[cell].look in ("hole", "open") and self.radii[cell] > 0.4

    def numbers(self, marks: Sequence[Mark]) -> str:
        """The numbers at cells, and at the strongest arrows of a policy; more would overlap where arrows cross."""
        texts, least = [], 0.1 if any(mark.share for mark in marks) else -1.0
        for mark in marks:
            if mark.text and (len(mark.click.cells) == 1 or (mark.click.cells and mark.share > least)):
                (x, y), (to_x, to_y) = self.centers[mark.click.cells[0]], self.centers[mark.click.cells[-1]]
                share = 0.5 if len(mark.click.cells) > 1 else 1.0
                texts.append(self.words((x + share * (to_x - x), y + share * (to_y - y)), mark.text))
        return _tag("g", "".join(texts), fill="#fff", font_size=12, font_weight=700, text_anchor="middle", **_HALO)

    # --- below the board ---

    def footer(self, view: View, marks: Sequence[Mark]) -> str:
        """The line below the board: who moves or has won, and the buttons."""
        y = self.bottom + MARGIN + 0.25
        player = view.to_play if view.outcome is None else int(view.outcome < 0)
        words = "to move" if view.outcome is None else "has won"
        x, drawn = self.left, ""
        if view.outcome == 0:
            words = "draw"
        else:
            icon = _Picture(_icon(self.board, (x + 0.3, y)))
            drawn = icon.pieces([Piece(0, player, "stone" if self.board.shapes[player] == "fill" else "")])
            x += 0.75
        drawn += self.words((x, y), words, fill=self.colors.text, font_size=14)
        return drawn + self.buttons(view, marks, y)

    def buttons(self, view: View, marks: Sequence[Mark], y: float) -> str:
        """The buttons, on the right. If there are too many, those with the largest shares, or none without a policy."""
        found = {mark.click.action: mark for mark in marks if not mark.click.cells}
        buttons = [click for click in view.clicks if not click.cells]
        buttons = sorted(buttons, key=lambda click: -found[click.action].share if click.action in found else 0.0)
        if not buttons or (len(buttons) > MOST_BUTTONS and not found):
            return ""
        buttons = buttons[:MOST_BUTTONS]
        labels = [
            button.name + (f" {found[button.action].text}" if button.action in found else "") for button in buttons
        ]
        widths = [0.3 + 0.2 * len(label) for label in labels]
        x = max(self.left + STATUS, self.right - sum(widths) - GAP * (len(widths) - 1))
        drawn = []
        for button, label, width in zip(buttons, labels, widths, strict=True):
            box = [(x, y - 0.28), (x + width, y - 0.28), (x + width, y + 0.28), (x, y + 0.28)]
            opacity = 0.75 * found[button.action].share if button.action in found else 0
            drawn.append(
                _tag("path", d=f"{_path(box)}Z", stroke=self.colors.text, fill=self.colors.mark, fill_opacity=opacity)
            )
            middle = (x + width / 2, y)
            drawn.append(self.words(middle, label, fill=self.colors.text, font_size=13, text_anchor="middle"))
            x += width + GAP
        self.right = max(self.right, x - GAP)
        return "".join(drawn)

    def words(self, at: Point, text: str, **attributes: object) -> str:
        """A text, vertically centered at a point."""
        return _tag("text", _words(text), x=_number(at[0] * SCALE), y=_number(at[1] * SCALE + 4.5), **attributes)

    def document(self, title: str, cells: str, body: Sequence[str]) -> str:
        """The complete SVG document."""
        left, top = self.left - MARGIN, self.top - MARGIN
        width, height = self.right - left + MARGIN, self.bottom - top + MARGIN + FOOTER
        x, y, w, h = (_number(length * SCALE) for length in (left, top, width, height))
        panel = _tag("rect", x=x, y=y, width=w, height=h, rx=10, fill=self.colors.panel)
        content = _tag("title", _words(title)) + panel + cells + _tag("g", "".join(body), pointer_events="none")
        return _tag(
            "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"{x} {y} {w} {h}", width=w, height=h,
            role="group", aria_label=title, font_family="system-ui,sans-serif",
        )  # fmt: skip


_HALO = {
    "stroke": INK,
    "stroke_width": 3,
    "stroke_linejoin": "round",
    "paint_order": "stroke",
    "pointer_events": "none",
}
"""A dark edge around light letters makes them readable on any colour."""


def _icon(board: Board, at: Point) -> Board:
    """A board of one cell, for the piece in the footer."""
    (x, y), half = at, 0.3
    outline = ((x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half))
    return replace(board, cells=(Cell("", outline),), labels=(), strokes=())


def _piece_name(piece: Piece) -> str:
    owner = "taken" if piece.player is None else ("first", "second")[piece.player]
    return f"{owner} {piece.text}" if piece.text else owner


def _inner_radius(outline: Sequence[Point]) -> float:
    """The distance from the center of a polygon to its nearest side."""
    x, y = center(outline)
    distances = []
    for (ax, ay), (bx, by) in zip(outline, [*outline[1:], outline[0]], strict=True):
        side = math.hypot(bx - ax, by - ay) or 1.0
        distances.append(abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / side)
    return min(distances)


def _shrunk(outline: Sequence[Point], share: float) -> list[Point]:
    """The outline at a share of its size, around the same center."""
    x, y = center(outline)
    return [(x + share * (px - x), y + share * (py - y)) for px, py in outline]


def _figure(name: str, at: Point, radius: float) -> str:
    """The path of a cross or a ring."""
    (x, y), r = at, radius
    if name == "ring":
        radius_text, across = _number(r * SCALE), _number(2 * r * SCALE)
        arc = f"a{radius_text} {radius_text} 0 1 0 "
        return f"{_path([(x - r, y)])}{arc}{across} 0{arc}-{across} 0"
    return _path([(x - r, y - r), (x + r, y + r)]) + _path([(x - r, y + r), (x + r, y - r)])


def _pawn(at: Point, radius: float) -> str:
    """The path of a pawn."""
    (x, y), r = at, radius * SCALE
    head, body = 0.3 * r, 0.62 * r
    start = _path([(x, y - 0.75 * radius)])
    q = _number
    return (
        f"{start}a{q(head)} {q(head)} 0 0 1 {q(0.18 * r)} {q(0.54 * r)}"
        f"q{q(0.06 * r)} {q(0.5 * r)} {q(body - 0.18 * r)} {q(0.62 * r)}v{q(0.24 * r)}h-{q(2 * body)}v-{q(0.24 * r)}"
        f"q{q(body - 0.24 * r)} -{q(0.12 * r)} {q(body - 0.18 * r)} -{q(0.62 * r)}"
        f"a{q(head)} {q(head)} 0 0 1 {q(0.18 * r)} -{q(0.54 * r)}Z"
    )


def _contrast(color: str, share: float = 0.7) -> str:
    """The colour, moved towards black if it is light, or towards white if it is dark."""
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    light = 0.299 * channels[0] + 0.587 * channels[1] + 0.114 * channels[2] > 110
    goal = 0 if light else 255
    return "#" + "".join(f"{round(value + share * (goal - value)):02x}" for value in channels)
