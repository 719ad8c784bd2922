"""Go as its rules say it, slowly: boards are dictionaries, and every play is tried."""

from __future__ import annotations

BLACK, WHITE = 0, 1
Point = tuple[int, int]
Board = dict[Point, int]


class PlainGo:
    """One game; points are (row from the top, column), a pass is None."""

    def __init__(self, size: int):
        self.size, self.board, self.mover, self.passes = size, dict[Point, int](), BLACK, 0
        self.earlier = [self.board]

    def beside(self, point: Point) -> list[Point]:
        row, column = point
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        return [(y, x) for y, x in near if 0 <= y < self.size and 0 <= x < self.size]

    def region(self, board: Board, point: Point) -> tuple[set[Point], set[int | None]]:
        """The points of the same content that hang together with this one, and what lies beside them."""
        found, waiting, edge = {point}, [point], set[int | None]()
        while waiting:
            for near in self.beside(waiting.pop()):
                if board.get(near) != board.get(point):
                    edge.add(board.get(near))
                elif near not in found:
                    found.add(near)
                    waiting.append(near)
        return found, edge

    def after(self, point: Point) -> Board | None:
        """The board after a stone; None if it may not be put there."""
        if point in self.board:
            return None
        board = {**self.board, point: self.mover}
        for near in self.beside(point):
            if board.get(near) == 1 - self.mover:
                chain, edge = self.region(board, near)
                if None not in edge:
                    board = {place: stone for place, stone in board.items() if place not in chain}
        suicide = None not in self.region(board, point)[1]
        return None if suicide or board in self.earlier else board

    def legal(self) -> set[Point]:
        points = [(row, column) for row in range(self.size) for column in range(self.size)]
        return {point for point in points if self.after(point) is not None}

    def play(self, point: Point | None) -> None:
        if point is not None:
            board = self.after(point)
            assert board is not None
            self.board = board
        self.passes = self.passes + 1 if point is None else 0
        self.mover = 1 - self.mover
        self.earlier.append(self.board)

    def lead(self) -> int:
        """Black's area less White's."""
        total = 0
        for row in range(self.size):
            for column in range(self.size):
                stone = self.board.get((row, column))
                owners = {stone} if stone is not None else self.region(self.board, (row, column))[1]
                total += {frozenset({BLACK}): 1, frozenset({WHITE}): -1}.get(frozenset(owners), 0)  # type: ignore[arg-type]
        return total
