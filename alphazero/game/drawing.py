"""Draws a position as SVG, from its `Board` and `View` alone; a policy and values can be marked on it.

A picture has its own background and no style sheet, so it looks the same on light and dark pages. It is small, because
stones of one colour share one path: each stone is a stroke of length zero with round ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from alphazero.game.board import Board, Click, Piece, Point, View, center

SCALE = 48
"""Pixels of a cell."""
MARGIN, FOOTER = 0.3, 0.8
"""Space between the cells and the edge of the panel, and the height of the line below them, in cells."""
STATUS, LETTER = 3.6, 0.17
"""Width of the words that say who moves, and of a letter of a button, in cells."""
HOLE = 0.82
"""Diameter of holes and stones, as a share of their cell."""
MOST_BUTTONS = 6
LEAST_SHARE = 0.005
"""Actions with a smaller share of the policy get no mark."""
INK = "#1c2430"
ORDINALS = "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"
HALO = {"stroke": INK, "stroke_width": 3, "stroke_linejoin": "round", "paint_order": "stroke", "text_anchor": "middle"}
"""A dark edge around light letters makes them readable on any colour."""

FORBIDDEN = re.compile(r"\x1b\[[0-9;]*m|[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Terminal colours, and control characters, which XML forbids."""
Layer = tuple[float, str, str]
"""A size as a share of the cell, a colour, and `round` or `square`."""
Numbers = Mapping[int, float] | Sequence[float] | np.ndarray


def draw(board: Board, view: View, title: str, policy: Numbers | None, values: Numbers | None, players: int = 2) -> str:
    """The picture as SVG; `policy` and `values` are as in `Position.svg`."""
    status = _status(view, players) if players > 1 else "to move" if view.outcome is None else "the game is over"
    picture, marks = _Picture(board), _marks(view, policy, values)
    cells = picture.cells(view) if board.cells else picture.text(view.text)
    body = [
        *(picture.line(_path(each.points), getattr(board.colors, each.color), each.width) for each in board.strokes),
        "".join(picture.area(cell, board.colors.mark, 0.8) for cell in view.winning),
        picture.pieces(view.pieces),
        *(picture.shading(mark) for mark in marks if mark.click.cells and mark.share),
        "".join(picture.ring(cell) for cell in view.last),
        picture.numbers(marks),
        *(picture.words(label.at, label.text) for label in board.labels),
        picture.footer(view, marks, status),
    ]
    return picture.document(f"{title}: {status}", cells, body)


class Mark(NamedTuple):
    """The shading and the number at one action."""

    click: Click
    share: float
    """The share of the policy, scaled so that the largest is 1."""
    text: str


def _marks(view: View, policy: Numbers | None, values: Numbers | None) -> list[Mark]:
    """The marks of all actions that get one, in ascending order of their shares, and of their values in equal ones."""
    first = {click.action: click for click in reversed(view.clicks)}
    shares, worth = _by_action(policy, first), _by_action(values, first)
    total, largest = sum(shares.values()) or 1.0, max(shares.values(), default=0.0) or 1.0
    marks = list[Mark]()
    # the best is drawn last, on top
    for action in sorted(first, key=lambda action: (shares.get(action, 0.0), worth.get(action, 0.0))):
        share = shares.get(action, 0.0)
        if share / total >= LEAST_SHARE if policy is not None else action in worth:
            text = f"{worth[action]:+.2f}" if action in worth else f"{share / total:.0%}" if values is None else ""
            mark = Mark(first[action], share / largest, text)
            # of several actions with the same clicks the best has the mark
            marks = [other for other in marks if not mark.click.cells or other.click.cells != mark.click.cells]
            marks.append(mark)
    return marks


def _by_action(numbers: Numbers | None, legal: Iterable[int]) -> dict[int, float]:
    """The finite numbers of legal actions."""
    if numbers is None:
        return {}
    found = {a: float(numbers[a]) for a in legal if not isinstance(numbers, Mapping) or a in numbers}
    return {action: number for action, number in found.items() if math.isfinite(number)}


def _status(view: View, players: int) -> str:
    if view.outcome is None:
        return f"{ORDINALS[view.to_play]} player to move"
    best = " and ".join(ORDINALS[player] for player in view.winners)
    together = "draw" if len(view.winners) == players else f"{best} player share the win"
    return together if len(view.winners) > 1 else f"{best} player has won"


def _number(length: float) -> str:
    """A length in pixels, with at most one decimal."""
    return f"{length * SCALE:.1f}".removesuffix(".0")


def _path(points: Iterable[Point], end: str = "") -> str:
    """The data of a path from point to point."""
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points) + end


def _words(text: str) -> str:
    return escape(FORBIDDEN.sub("", text))


def _tag(name: str, content: str = "", /, **attributes: object) -> str:
    """One element; underscores in the names of attributes become hyphens."""
    words = "".join(f' {key.replace("_", "-")}="{_words(str(value))}"' for key, value in attributes.items())
    return f"<{name}{words}>{content}</{name}>" if content else f"<{name}{words}/>"


class _Picture:
    """Draws the parts of one picture. Each method returns SVG, and `document` puts the parts together."""

    def __init__(self, board: Board):
        self.board = board
        self.colors = board.colors
        self.centers = [center(cell.outline) for cell in board.cells]
        self.radii = [round(_inner_radius(cell.outline), 3) for cell in board.cells]
        points = [point for cell in board.cells for point in cell.outline]
        points += [point for stroke in board.strokes for point in stroke.points]
        points += [(x + side, y + side) for x, y in (label.at for label in board.labels) for side in (-0.15, 0.15)]
        xs, ys = zip(*points, strict=True) if points else ((0.0, 4.0), (0.0, 0.0))
        self.left, self.right, self.top, self.bottom = min(xs), max(xs), min(ys), max(ys)

    # --- the board ---

    def cells(self, view: View) -> str:
        """All cells; the title of each says its name and its piece."""
        owners = dict(enumerate(ORDINALS)) | {None: "taken"}
        names = {piece: piece.shape if piece.shape in self.board.glyphs else "" for piece in view.pieces}
        pieces = {p.cell: re.sub(" +", " ", f", {owners[p.player]} {names[p]} {p.text}").rstrip() for p in view.pieces}
        fills = {"plain": self.colors.cell, "shaded": self.colors.shaded, "hole": self.colors.cell}
        drawn = []
        for number, cell in enumerate(self.board.cells):
            fill, title = fills.get(cell.look, "none"), _tag("title", _words(cell.name + pieces.get(number, "")))
            line = self.colors.line if cell.look in ("plain", "shaded") else fill
            drawn.append(_tag("path", title, d=_path(cell.outline, "Z"), fill=fill, stroke=line))
        holes = [number for number, cell in enumerate(self.board.cells) if cell.look == "hole"]
        return _tag("g", "".join(drawn), pointer_events="all") + self.discs(holes, (HOLE, self.colors.shaded, "round"))

    def text(self, text: str) -> str:
        """The position as text, for a game whose board has no cells."""
        lines = FORBIDDEN.sub("", text).split("\n")
        rows = [(_number(0.3 + 0.45 * row), _words(line).replace(" ", "\u00a0")) for row, line in enumerate(lines)]
        spans = [_tag("tspan", line or "\u00a0", x=0, y=y) for y, line in rows]
        self.bottom, self.right = 0.45 * len(lines), max(4.0, max(map(len, lines)) * 0.22)
        return _tag("text", "".join(spans), fill=self.colors.text, font_size=14, font_family="monospace")

    # --- pieces ---

    def discs(self, cells: Sequence[int], *layers: Layer) -> str:
        """Discs or squares in the middle of cells, in layers from the lowest up."""
        paths: dict[float, str] = {}
        for cell in sorted(cells, key=lambda cell: self.radii[cell]):
            paths[self.radii[cell]] = paths.get(self.radii[cell], "") + _path([self.centers[cell]], "h0")
        sizes = [(layer, radius) for layer in layers for radius in paths]
        return "".join(self.line(paths[r], color, 2 * share * r, cap) for (share, color, cap), r in sizes)

    def pieces(self, pieces: Sequence[Piece]) -> str:
        kinds: dict[tuple[int | None, str], list[int]] = {}
        for piece in pieces:
            own = "stone" if piece.player is None else self.board.shapes[piece.player % len(self.board.shapes)]
            kinds.setdefault((piece.player, piece.shape or own), []).append(piece.cell)
        drawn = [self.shapes(shape, player, cells) for (player, shape), cells in kinds.items()]
        texts = [(self.centers[piece.cell], piece.text) for piece in pieces if piece.text]
        drawn += [self.words(at, text, fill="#fff", font_size=15, **HALO) for at, text in texts]
        return "".join(drawn)

    def shapes(self, shape: str, player: int | None, cells: Sequence[int]) -> str:
        color, places = self.color_of(player), [(self.centers[cell], self.radii[cell]) for cell in cells]
        if shape in ("line", "fill"):
            outlines = [_shrunk(self.board.cells[cell].outline, 1 if shape == "line" else 0.96) for cell in cells]
            area = _tag("path", d="".join(_path(outline, "Z") for outline in outlines), fill=color)
            return area + self.discs(cells, *(self.engraving(player, 0.35) if shape == "fill" else ()))
        if shape == "ring":
            return "".join(self.circle(at, 0.6 * radius, color, 0.28 * radius) for at, radius in places)
        if shape == "cross":
            strokes = [(x, y, (0.6 * radius, side * 0.6 * radius)) for (x, y), radius in places for side in (1, -1)]
            lines = (_path([(x - right, y - down), (x + right, y + down)]) for x, y, (right, down) in strokes)
            return self.line("".join(lines), color, 0.28 * places[0][1])
        if shape == "triangle":
            corners = [(0.0, -0.66), (0.62, 0.5), (-0.62, 0.5)]
            drawn = [[(x + right * r, y + down * r) for right, down in corners] for (x, y), r in places]
            return self.line("".join(_path(outline, "Z") for outline in drawn), color, 0.24 * places[0][1])
        if shape == "dot":
            return self.discs(cells, (0.36, _contrast(color, 0.35), "square"), (0.28, color, "square"))
        if glyph := self.board.glyphs.get(shape):
            at = (f"translate({_number(x)} {_number(y)})scale({r * SCALE / 100:.3g})" for (x, y), r in places)
            paths = "".join(_tag("path", d=glyph, transform=place) for place in at)
            looks = {"stroke": _contrast(color), "stroke_width": 6, "stroke_linejoin": "round"}
            return _tag("g", paths, fill=color, stroke_linecap="round", **looks)
        rim = (HOLE, _contrast(color, 0.35), "round")
        return self.discs(cells, rim, (HOLE - 0.07, color, "round"), *self.engraving(player, 0.45))

    def color_of(self, player: int | None) -> str:
        return self.colors.neutral if player is None else self.colors.of_players[player]

    def engraving(self, player: int | None, share: float) -> list[Layer]:
        """Another mark for each player, so that nobody needs colours to tell them apart.

        A ring, a square, nothing; then a disc, a full square, a dot; then a ring and a square with a dot inside.
        """
        if player is None or player == 2:
            return []
        (row, kind), color = divmod(player, 3), self.color_of(player)
        cap, size, dark = ("round", "square", "round")[kind], share * (1.0, 0.8, 0.4)[kind], _contrast(color, 0.45)
        layers = [(size + 0.06, dark, cap), (size - 0.06, color, cap), (0.16, dark, "round")]
        return layers[: (2, 1, 3)[row]]

    def line(self, path: str, color: str, width: float, cap: str = "round") -> str:
        return _tag("path", d=path, fill="none", stroke=color, stroke_width=_number(width), stroke_linecap=cap)

    def circle(self, at: Point, radius: float, color: str, width: float) -> str:
        x, y, r, wide = map(_number, (*at, radius, width))
        return _tag("circle", cx=x, cy=y, r=r, fill="none", stroke=color, stroke_width=wide)

    # --- marks ---

    def is_round(self, cell: int) -> bool:
        """Whether marks on the cell are round, because its outline is not drawn."""
        return self.board.cells[cell].look in ("hole", "open") and self.radii[cell] > 0.4

    def area(self, cell: int, color: str, opacity: float) -> str:
        """The inner part of a cell in one colour."""
        if self.is_round(cell):
            return _tag("g", self.discs([cell], (1.0, color, "round")), opacity=opacity)
        outline = _shrunk(self.board.cells[cell].outline, 0.95)
        return _tag("path", d=_path(outline, "Z"), fill=color, fill_opacity=opacity)

    def ring(self, cell: int) -> str:
        """A line around a cell, which marks the last action."""
        if self.is_round(cell):
            return self.circle(self.centers[cell], 0.88 * self.radii[cell], self.colors.mark, 0.05)
        return self.line(_path(_shrunk(self.board.cells[cell].outline, 0.88), "Z"), self.colors.mark, 0.05)

    def shading(self, mark: Mark) -> str:
        """A share of the policy as a coloured cell, or as a pointed triangle for an action of two clicks."""
        opacity, cells = round(0.2 + 0.75 * mark.share, 2), mark.click.cells
        if len(cells) == 1:
            return self.area(cells[0], self.colors.mark, opacity)
        (x, y), (to_x, to_y) = self.centers[cells[0]], self.centers[cells[-1]]
        length = math.hypot(to_x - x, to_y - y) or 1.0
        ahead_x, ahead_y, wide = (to_x - x) / length, (to_y - y) / length, 0.1 + 0.12 * mark.share
        corners = [(x - ahead_y * wide, y + ahead_x * wide), (x + ahead_y * wide, y - ahead_x * wide)]
        tip = to_x + 0.1 * ahead_x, to_y + 0.1 * ahead_y
        return _tag("path", d=_path([*corners, tip], "Z"), fill=self.colors.mark, fill_opacity=opacity)

    def numbers(self, marks: Sequence[Mark]) -> str:
        """The numbers at cells, and in the middle of arrows."""
        ends = [(mark, [self.centers[cell] for cell in mark.click.cells]) for mark in marks if mark.text]
        texts = [(center([cells[0], cells[-1]]), mark.text) for mark, cells in ends if cells]
        looks = {"fill": "#fff", "font_size": 12, "font_weight": 700} | HALO
        return "".join(self.words(at, text, **looks) for at, text in texts)

    # --- below the board ---

    def footer(self, view: View, marks: Sequence[Mark], status: str) -> str:
        """The line below the board: who moves or has won, and some buttons, those with the largest shares first."""
        x, y = self.left, self.bottom + MARGIN + 0.25
        player = (*view.winners, view.to_play)[0]
        icon = "" if len(view.winners) > 1 else self.line(_path([(x + 0.2, y)], "h0"), self.color_of(player), 0.4)
        drawn = [icon, self.words((x + 0.5, y), status, text_anchor="start")]
        found = {mark.click: f"{mark.click.name} {mark.text}" for mark in reversed(marks) if not mark.click.cells}
        labels = list((found | {c: found.get(c, c.name) for c in view.clicks if not c.cells}).values())
        x += max(STATUS, 0.5 + LETTER * len(status) if len(view.winners) > 1 else 0)
        for label in labels[:MOST_BUTTONS] if marks or len(labels) <= MOST_BUTTONS else ():
            x += 0.4 + LETTER * len(label)
            drawn.append(self.words((x, y), label, text_anchor="end", text_decoration="underline"))
        self.right = max(self.right, x)
        return "".join(drawn)

    def words(self, at: Point, text: str, **looks: object) -> str:
        """A text, vertically centered at a point."""
        looks = {"fill": self.colors.text, "font_size": 13, "text_anchor": "middle"} | looks
        return _tag("text", _words(text), x=_number(at[0]), y=_number(at[1] + 0.09), **looks)

    def document(self, title: str, cells: str, body: Sequence[str]) -> str:
        left, top = self.left - MARGIN, self.top - MARGIN
        width, height = self.right - left + MARGIN, self.bottom - top + MARGIN + FOOTER
        x, y, w, h = map(_number, (left, top, width, height))
        panel = _tag("rect", x=x, y=y, width=w, height=h, rx=10, fill=self.colors.panel)
        content = _tag("title", _words(title)) + panel + cells + _tag("g", "".join(body), pointer_events="none")
        return _tag(
            "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"{x} {y} {w} {h}", width=w, height=h,
            role="group", aria_label=title, font_family="system-ui,sans-serif",
        )  # fmt: skip


def _inner_radius(outline: Sequence[Point]) -> float:
    """The distance from the center of a polygon to its nearest side."""
    x, y = center(outline)
    sides = zip(outline, [*outline[1:], outline[0]], strict=True)
    return min(
        abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / (math.hypot(bx - ax, by - ay) or 1.0)
        for (ax, ay), (bx, by) in sides
    )


def _shrunk(outline: Sequence[Point], share: float) -> list[Point]:
    """The outline at a share of its size, around the same center."""
    x, y = center(outline)
    return [(x + share * (px - x), y + share * (py - y)) for px, py in outline]


def _contrast(color: str, share: float = 0.7) -> str:
    """The colour, moved towards black if it is light, or towards white if it is dark."""
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    goal = 0 if 0.299 * channels[0] + 0.587 * channels[1] + 0.114 * channels[2] > 110 else 255
    return "#" + "".join(f"{round(value + share * (goal - value)):02x}" for value in channels)
