"""Winograd's convolutions of boards, in three parts: tiles at their points, products there, and tiles again.

A `board` is (height, width, tall, wide): its size, and that of its tiles. `columns float32[TILE widest]` holds zeros,
then a tile between its two transformations; `offsets int64[6 or more]` is scratch space.
"""

from __future__ import annotations

from alphazero.game.kernels import kernel
from alphazero.nets.kernels.vector_code import BACK, FROM, INTO, PANEL, ROWS, accumulate, multiply, transform

GROUP = 4
"""Boards whose tiles are multiplied at once."""
LEARNED = 16
"""The same for gradients of filters, whose sums take more memory than the second-level cache has."""
TILE = 37
"""Rows of the widest tensor in `columns`: one of zeros, and 6 x 6 points at most."""


@kernel
def num_tiles(board):
    """The number of tiles that cover the board."""
    height, width, tall, wide = board
    return -(-height // tall) * -(-width // wide)


@kernel
def spread_tile(kind, numbers, cells, board, tile, columns, offsets, spread, place, point_stride):
    """Writes what a tile makes at its points: those of point p to `spread[place + p point_stride:]`.

    INTO takes all that the tile's results depend on, FROM the gradient of its results. `cells` says where the channels
    of cell c are in `numbers float32[...]`, which begin with zeros: at `start + c stride`, and how many.
    """
    start, stride, channels = cells
    height, width, tall, wide = board
    tile_row, tile_column = divmod(tile, -(-width // wide))
    edge = 1 if kind == INTO else 0
    top, left, rows, across = tile_row * tall - edge, tile_column * wide - edge, tall + 2 * edge, wide + 2 * edge
    base, points = len(columns) // TILE, wide + 2
    for a in range(rows):
        if 0 <= top + a < height:
            for b in range(across):
                cell = (top + a) * width + left + b
                offsets[b] = start + cell * stride if 0 <= left + b < width else 0
            transform(kind, wide, numbers, offsets, columns, base + a * points * channels, channels, channels)
    for b in range(points):
        for a in range(rows):
            offsets[a] = base + (a * points + b) * channels if 0 <= top + a < height else 0
        transform(kind, tall, columns, offsets, spread, place + b * point_stride, points * point_stride, channels)


@kernel
def multiply_points(spread, rows, inputs, filters, first, outputs, board, offsets, products):
    """Multiplies `spread [rows, points, inputs]` by the filters of each point, to `products [rows, points, outputs]`.

    The filters are `filters[first:]`, `float32[points, outputs / PANEL, inputs, PANEL]`. `products` has room for as
    many rows as the next multiple of ROWS.
    """
    _, _, tall, wide = board
    points = (tall + 2) * (wide + 2)
    for point in range(points):
        for channel in range(0, outputs, PANEL):
            panel = first + (point * outputs + channel) * inputs
            for row in range(0, rows, ROWS):
                for r in range(ROWS):
                    offsets[r] = (min(row + r, rows - 1) * points + point) * inputs
                place = (row * points + point) * outputs + channel
                multiply(spread, offsets, 1, inputs, filters, panel, products, place, points * outputs)


@kernel
def gather_tile(products, row, channels, board, rows, columns, offsets, lines):
    """Writes the first `rows` of a tile to `lines float32[tall, wide, channels]`; its products are `products[row]`."""
    _, _, tall, wide = board
    points, base = wide + 2, len(columns) // TILE
    place = row * (tall + 2) * points * channels
    for b in range(points):
        for a in range(tall + 2):
            offsets[a] = place + (a * points + b) * channels
        transform(BACK, tall, products, offsets, columns, base + b * channels, points * channels, channels)
    for a in range(rows):
        for b in range(points):
            offsets[b] = base + (a * points + b) * channels
        transform(BACK, wide, columns, offsets, lines, a * wide * channels, channels, channels)


@kernel
def transform_filters(weights, columns, rows, filters):
    """Writes `filters float32[points, n]` of `weights float32[9, n]`, by the matrices `float64[t, 3]` of both sides."""
    for a in range(len(columns)):
        for b in range(len(rows)):
            out = filters[a * len(rows) + b]
            for j in range(out.size):
                total = 0.0
                for i in range(3):
                    left, middle, right = weights[3 * i, j], weights[3 * i + 1, j], weights[3 * i + 2, j]
                    total += columns[a, i] * (rows[b, 0] * left + rows[b, 1] * middle + rows[b, 2] * right)
                out[j] = total


@kernel
def convolve_boards(boards, filters, board, workspace, results):
    """3x3 convolutions of `boards float32[n, cells, inputs]` to `results float32[n, cells, outputs]`.

    `filters float32[...]` as in `multiply_points`. `workspace` is (padded, spread, products, columns, lines, offsets);
    its first array begins with zeros for inputs and for outputs.
    """
    padded, spread, products, columns, lines, offsets = workspace
    height, width, tall, wide = board
    inputs, outputs, tiles = boards.shape[2], results.shape[2], num_tiles(board)
    base, points = max(inputs, outputs), (tall + 2) * (wide + 2)
    for first in range(0, len(boards), GROUP):
        count = min(GROUP, len(boards) - first)
        for i in range(count):
            pad(boards[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells = (base, inputs, inputs)
                place = (i * tiles + tile) * points * inputs
                spread_tile(INTO, padded, cells, board, tile, columns, offsets, spread, place, inputs)
        multiply_points(spread, count * tiles, inputs, filters, 0, outputs, board, offsets, products)
        for i in range(count):
            result = results[first + i].reshape(-1)
            for tile in range(tiles):
                tile_row, tile_column = divmod(tile, -(-width // wide))
                top, left = tile_row * tall, tile_column * wide
                rows = min(tall, height - top)
                gather_tile(products, i * tiles + tile, outputs, board, rows, columns, offsets, lines)
                for a in range(rows):
                    place = ((top + a) * width + left) * outputs
                    line = result[place : place + min(wide, width - left) * outputs]
                    for j in range(line.size):
                        line[j] = lines[a * wide * outputs + j]


@kernel
def add_gradients(boards, gradients, board, workspace, filters):
    """Adds the gradient of the filters at each point to `filters float32[points, inputs, outputs]`, made flat.

    `boards float32[n, cells, inputs]` are what was convolved, `gradients float32[n, cells, outputs]` those of the
    results. `workspace` as in `convolve_boards`, whose first array begins with zeros for inputs and for outputs.
    """
    padded, spread, products, columns, _, offsets = workspace
    _, _, tall, wide = board
    inputs, outputs, tiles = boards.shape[2], gradients.shape[2], num_tiles(board)
    points, base = (tall + 2) * (wide + 2), max(inputs, outputs)
    # a row more, or the numbers of one tile would all fall on the same place of the first-level cache
    to_spread, to_products = (LEARNED * tiles + 1) * inputs, (LEARNED * tiles + 1) * outputs
    for first in range(0, len(boards), LEARNED):
        count = min(LEARNED, len(boards) - first)
        for i in range(count):
            pad(boards[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells, row = (base, inputs, inputs), i * tiles + tile
                spread_tile(INTO, padded, cells, board, tile, columns, offsets, spread, row * inputs, to_spread)
            pad(gradients[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells, row = (base, outputs, outputs), i * tiles + tile
                spread_tile(FROM, padded, cells, board, tile, columns, offsets, products, row * outputs, to_products)
        for point in range(points):
            for channel in range(0, outputs, PANEL):
                for row in range(0, inputs, ROWS):
                    accumulate(
                        spread, point * to_spread + row, inputs, products, point * to_products + channel, outputs,
                        count * tiles, filters, (point * inputs + row) * outputs + channel, outputs,
                    )  # fmt: skip


@kernel
def pad(numbers, padded, base):
    """Copies a board behind the zeros."""
    copied = padded[base : base + numbers.size]
    for j in range(numbers.size):
        copied[j] = numbers[j]
