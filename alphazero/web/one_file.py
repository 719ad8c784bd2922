"""One HTML file that plays a game with a net, in any browser and without a server.

The file holds the page of `alphazero serve`, and in place of the server a worker with the game's rules, search and net
as WebAssembly. It loads nothing: its content security policy forbids that.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from alphazero._version import __version__
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import GameError, NetError
from alphazero.game import Game
from alphazero.game.rules import shown_words
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestants import load_net, search_of
from alphazero.storage.files import plain_number
from alphazero.wasm.dice_looks import dice_looks_of, has_numbers
from alphazero.wasm.engine import ModuleBuilder, evaluate_by_network, opinion_of_network
from alphazero.wasm.looks import Looks, looks_of, mover_bits
from alphazero.wasm.moves import add_baselines, add_moves
from alphazero.wasm.network import Program, add_network, program_of
from alphazero.wasm.oracle import oracle_engine
from alphazero.web.seats import Slider, is_figure, size_of, slider_of, usual_seats
from alphazero.web.tables import plain_name, score_fields, title_of

PAGE = Path(__file__).with_name("page")
WORKER = Path(__file__).parents[1] / "wasm" / "page"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' data: blob:; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""The rights that a browser gives the file: to run its own parts, and to load nothing."""
WORKER_PARTS = ("core.js", "reading.js", "worker.js")
"""One script, in this order."""
MOST_CHANGE = 2**-8
"""The part by which float16 may change a layer; the server's bf16 rounds by 2**-9."""
IMPORT = re.compile(r'^(import .*? from )"\./([\w-]+\.js)";$', re.MULTILINE | re.DOTALL)


def make_file(loaded: LoadedGame, net: NeuralNet, title: str, card: Mapping[str, Any], loaded_as: str = "") -> str:
    """The file's text; `title` names the net, and `card` says how it was made and how strong it is.

    `loaded_as` is the name by which the game was loaded, which saved games may hold in place of the game's own.
    Raises GameError or NetError, in one sentence, for a game or a network that a browser cannot run.
    """
    game = loaded.game
    builder, program = ModuleBuilder(game), program_of(net, game)
    weights = in_half_precision(program)
    has_baselines = game.num_outcomes > 0 or game.num_players > 2
    add_network(builder, program)
    learned = search_of(net, title)
    sees_wins = game.num_players == 2  # as `Evaluator` does
    builder.add_search(evaluate_by_network if sees_wins else opinion_of_network, learned, opinion_of_network)
    add_moves(builder, learned)
    if has_baselines:
        add_baselines(builder)
    engine = builder.build()
    slider = up_to(slider_of(card), engine.most_simulations)
    contents = {
        "version": __version__,
        "game": game.name,
        "loaded_as": plain_name(loaded_as or game.name),
        "title": title_of(game.name),
        "board": asdict(game.board),
        "looks": asdict(_looks_of(game)),
        "columns": game.observation_shape[2],
        "seats": game.num_players,
        "mover_bits": mover_bits(game),
        "shown_words": shown_words(game),
        "runs_together": game.split_moves("12") != ["12"],
        "splits_words": _splits_words(game),
        "players": [
            {
                "id": "net", "title": title, "note": note_of(card), "searches": True, "generations": [],
                "slider": slider.as_fields(),
            },
            *(_baselines(loaded, engine.most_simulations) if has_baselines else ()),
        ],
        "places": engine.places,
        "most_simulations": engine.most_simulations,
        "oracle": _oracle_of(loaded),
        "module": _text_of(engine.module),
        "weights": _text_of(weights.tobytes()),
    }  # fmt: skip
    contents |= {"score": score_fields(game)} if game.score else {}
    return _compose(f"{title_of(game.name)} · {title}", contents)


def _looks_of(game: Game) -> Looks:
    if not has_numbers(game):
        try:
            return looks_of(game)
        except GameError:  # random games show some pieces too seldom
            if not game.board.cells:
                raise
    return dice_looks_of(game)


def _baselines(loaded: LoadedGame, most: int) -> Iterator[dict[str, Any]]:
    """The contestants that need no network, as in the page of the server, but none to analyse with."""
    for seat in usual_seats(loaded, lambda path: load_net(str(path), loaded, "cpu")):
        if seat.id in ("mcts", "greedy", "random"):
            slider = seat.slider and up_to(seat.slider, most)
            yield replace(seat, slider=slider, searches=False).as_fields()


def _splits_words(game: Game) -> bool:
    """The game's words may be written without spaces, as the first ones of a game show."""
    position, words = game.start(), list[str]()
    while len(words) < 3 and not position.terminal:
        words.append(position.format(position.legal_actions[0]))
        position = position.play(position.legal_actions[0])
    return game.split_moves("".join(words)) == words


def in_half_precision(program: Program) -> np.ndarray:
    """The weights in float16; raises NetError if that changes a layer, as numbers too large or too small for it do."""
    with np.errstate(over="ignore"):
        rounded = program.weights.astype("<f2")
    for layer in program.layers:
        size = layer.outputs * layer.taps * layer.inputs
        filters, bias = (slice(at, at + n) for at, n in ((layer.weights, size), (layer.bias, layer.outputs)))
        exact = program.weights[filters].astype(np.float64)
        change = np.linalg.norm(rounded[filters] - exact)
        if not np.isfinite(rounded[bias]).all():
            exact, change = program.weights[bias], np.float64(np.inf)
        if not change <= MOST_CHANGE * np.linalg.norm(exact):
            raise NetError(
                "a web page keeps weights in float16, which holds 0.0001 to 65,504 well, and a layer of this network "
                f"has weights up to {np.abs(exact).max():.3g}: scale its layers"
            )
    return rounded


def _oracle_of(loaded: LoadedGame) -> dict[str, Any] | None:
    """The oracle, if it has a solver of compiled functions."""
    oracle = loaded.make_oracle and loaded.make_oracle(loaded.game)
    if not oracle or oracle.compiled is None:
        return None
    engine = oracle_engine(loaded.game, oracle.compiled)
    return {"module": _text_of(engine.module), "places": engine.places, "how": oracle.how, "unit": oracle.unit}


def up_to(slider: Slider, most: int) -> Slider:
    """The slider with the steps that the engine in the page has room for, since it searches no further."""
    steps = tuple(step for step in slider.steps if step <= most) or (most,)
    return replace(slider, steps=steps, start=slider.start if slider.start in steps else steps[-1])


def note_of(card: Mapping[str, Any]) -> str:
    """A line that says how a net was made and how strong it is."""
    description = card.get("description")
    said = [description if isinstance(description, str) else "", size_of(card)]
    rating = card.get("rating")
    if isinstance(rating, Mapping) and isinstance(elo := rating.get("elo"), int) and is_figure(elo):
        said.append(f"{elo:+} Elo above {rating.get('above')}")
    return "; ".join(part.rstrip(".") for part in said if part)


def _compose(title: str, contents: Mapping[str, Any]) -> str:
    """The page with its parts inside."""
    files = [*sorted(PAGE.glob("*.*")), *WORKER.glob("*.js")]
    read = {path.name: path.read_text(encoding="utf-8") for path in files}
    read["socket.js"] = read["connection.js"]
    modules = {path.name: IMPORT.sub(r'\1"\2";', read[path.name]) for path in sorted(PAGE.glob("*.js"))}
    main = modules.pop("main.js")
    addresses = {name: f"data:text/javascript;base64,{_text_of(code.encode())}" for name, code in modules.items()}
    icon = f"data:image/svg+xml;base64,{_text_of(read['icon.svg'].encode())}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<title>{escape(title)}</title>'
    scripts = "\n".join(
        f"<script {kind}>{code}</script>"
        for kind, code in (
            ('type="importmap"', _quoted({"imports": addresses})),
            ('type="application/json" id="file"', _quoted(contents)),
            ('type="text/plain" id="worker"', "\n".join(map(read.__getitem__, WORKER_PARTS))),
            ('type="module"', main),
        )
    )
    parts = {
        "<title>alphazero</title>": head,
        '<link rel="stylesheet" href="style.css">': f"<style>\n{read['style.css']}</style>",
        '<script type="module" src="main.js"></script>\n': "",
        '"icon.svg"': f'"{icon}"',
        "</body>": f"{scripts}\n</body>",
    }
    whole = read["index.html"]
    for part, replacement in parts.items():
        assert part in whole, part
        whole = whole.replace(part, replacement)
    return whole


def _text_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _quoted(value: Any) -> str:
    """JSON in which no text can end the script around it."""
    return json.dumps(value, ensure_ascii=True, default=plain_number).replace("<", "\\u003c")
