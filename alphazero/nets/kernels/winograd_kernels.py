"""Winograd's convolutions of boards, in three parts: tiles at their points, products there, and tiles again.

A `board` is (height, width, tall, wide): its size, and that of its tiles. `columns float32[TILE widest]` holds zeros,
then a tile between its two transformations; `offsets int64[6 or more]` is scratch space.
"""

from __future__ import annotations

from alphazero.game.kernels import kernel
from alphazero.nets.kernels.vector_code import (
    PANEL,
    ROWS,
    accumulate,
    back_3,
    back_4,
    from_3,
    from_4,
    into_3,
    into_4,
    multiply,
)

GROUP = 4
"""Boards whose tiles are multiplied at once."""
LEARNED = 16
"""The same for gradients of filters, whose sums take more memory than the second-level cache has."""
INTO, BACK, FROM = range(3)
"""From numbers to points, from points to numbers, and the transpose of that, for gradients."""
TILE = 37
"""Rows of the widest tensor in `columns`: one of zeros, and 6 x 6 points at most."""


@kernel
def num_tiles(board):
    """The number of tiles that cover the board."""
    height, width, tall, wide = board
    return -(-height // tall) * -(-width // wide)


@kernel
def spread_tile(numbers, cells, zeros, board, tile, columns, offsets, spread, place, stride):
    """Writes all that a tile depends on, at its points: those of point p to `spread[place + p stride:]`.

    `cells` says where the channels of cell c are in `numbers float32[...]`, at `start + c stride`, and how many.
    Outside of the board are the numbers at `zeros`.
    """
    _, width, tall, wide = board
    tile_row, tile_column = divmod(tile, -(-width // wide))
    window = (tile_row * tall - 1, tile_column * wide - 1, tall + 2, wide + 2)
    spread_window(INTO, numbers, cells, zeros, board, window, columns, offsets, spread, place, stride)


@kernel
def spread_gradient(numbers, cells, zeros, board, tile, columns, offsets, spread, place, stride):
    """Writes the gradient of the products of a tile; `numbers` hold that of the results."""
    _, width, tall, wide = board
    tile_row, tile_column = divmod(tile, -(-width // wide))
    window = (tile_row * tall, tile_column * wide, tall, wide)
    spread_window(FROM, numbers, cells, zeros, board, window, columns, offsets, spread, place, stride)


@kernel
def spread_window(kind, numbers, cells, zeros, board, window, columns, offsets, spread, place, point_stride):
    """Turns a window of the board, (top, left, height, width), into points, along its rows and then its columns."""
    start, stride, channels = cells
    height, width, tall, wide = board
    top, left, rows, across = window
    base, points = len(columns) // TILE, wide + 2
    for a in range(rows):
        if 0 <= top + a < height:
            for b in range(across):
                cell = (top + a) * width + left + b
                offsets[b] = start + cell * stride if 0 <= left + b < width else zeros
            transform(kind, wide, numbers, offsets, columns, base + a * points * channels, channels, channels)
    for b in range(points):
        for a in range(rows):
            offsets[a] = base + (a * points + b) * channels if 0 <= top + a < height else 0
        transform(kind, tall, columns, offsets, spread, place + b * point_stride, points * point_stride, channels)


@kernel
def transform(kind, length, rows, offsets, out, place, stride, channels):
    """One of the transformations of a tile of that length along one side; see `vector_code`."""
    if kind == INTO:
        if length == 3:
            into_3(rows, offsets, out, place, stride, channels)
        else:
            into_4(rows, offsets, out, place, stride, channels)
    elif kind == BACK:
        if length == 3:
            back_3(rows, offsets, out, place, stride, channels)
        else:
            back_4(rows, offsets, out, place, stride, channels)
    elif length == 3:
        from_3(rows, offsets, out, place, stride, channels)
    else:
        from_4(rows, offsets, out, place, stride, channels)


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
def gather_columns(products, row, channels, board, columns, offsets):
    """Turns the columns of a tile, `products[row]`, from points into numbers."""
    _, _, tall, wide = board
    rows, across, base = tall + 2, wide + 2, len(columns) // TILE
    place = row * rows * across * channels
    for b in range(across):
        for a in range(rows):
            offsets[a] = place + (a * across + b) * channels
        transform(BACK, tall, products, offsets, columns, base + b * channels, across * channels, channels)


@kernel
def gather_line(columns, a, channels, board, offsets, lines, place):
    """Writes row a of a tile after `gather_columns` to `lines[place:]`, `float32[wide, channels]`."""
    _, _, _, wide = board
    across, base = wide + 2, len(columns) // TILE
    for b in range(across):
        offsets[b] = base + (a * across + b) * channels
    transform(BACK, wide, columns, offsets, lines, place, channels, channels)


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
                spread_tile(padded, cells, 0, board, tile, columns, offsets, spread, place, inputs)
        multiply_points(spread, count * tiles, inputs, filters, 0, outputs, board, offsets, products)
        for i in range(count):
            result = results[first + i].reshape(-1)
            for tile in range(tiles):
                tile_row, tile_column = divmod(tile, -(-width // wide))
                top, left = tile_row * tall, tile_column * wide
                gather_columns(products, i * tiles + tile, outputs, board, columns, offsets)
                for a in range(min(tall, height - top)):
                    gather_line(columns, a, outputs, board, offsets, lines, 0)
                    place = ((top + a) * width + left) * outputs
                    line = result[place : place + min(wide, width - left) * outputs]
                    for j in range(line.size):
                        line[j] = lines[j]


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
                spread_tile(padded, cells, 0, board, tile, columns, offsets, spread, row * inputs, to_spread)
            pad(gradients[first + i].reshape(-1), padded, base)
            for tile in range(tiles):
                cells, row = (base, outputs, outputs), i * tiles + tile
                spread_gradient(padded, cells, 0, board, tile, columns, offsets, products, row * outputs, to_products)
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
