"""Takes the pictures of the page in the browser, for the documents: `python -m benchmarks.page_pictures`.

Every view, light and dark, and a phone. It needs chromium and playwright, and trains two tiny runs to watch.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alphazero.catalogue import registry
from alphazero.commands.program import main as alphazero
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.web.engine import Engine, Stage
from alphazero.web.server import PageServer

ROOT = Path(__file__).resolve().parents[1]
REVIEWED = "4444435525566336332227"
"""A game of Connect Four with mistakes on both sides."""
TINY = "--net.blocks 1 --net.channels 16 --search.num-simulations 16 --self-play.games-per-generation 48 --gate.games 8"
DESKTOP, PHONE = {"width": 1100, "height": 720}, {"width": 360, "height": 720}
VIEWS = {
    "play": "#/play?game=hex&moves=d4 e3 c5 e4 d5 e2",
    "analyse": f"#/analyse?game=connect4&moves={REVIEWED}&ply=8",
    "runs": "#/runs",
    "tournaments": "#/tournaments",
}


@dataclass(frozen=True)
class PagePicturesConfig:
    """Takes the pictures of the page in the browser."""

    folder: Path = ROOT / "docs" / "pictures"
    """The folder to write them to."""
    chromium: str = shutil.which("chromium") or ""
    """The browser."""


def main(argv: list[str]) -> None:
    config = parse(PagePicturesConfig, argv)
    if not config.chromium or not config.folder.is_dir():
        raise InvalidSetting("the pictures need a folder that exists and a browser: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as made:
        make_something_to_watch(Path(made))
        stage = Stage("connect4", registry.load("connect4"), ["best"], Path(made, "runs"), Path(made, "tournaments"))
        with PageServer(Engine(stage), 0) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=config.chromium, args=["--no-sandbox"])
            for name, place in VIEWS.items():
                for scheme in ("light", "dark"):
                    ending = "_dark" if scheme == "dark" else ""
                    take(browser, server.address + place, config.folder / f"page_{name}{ending}.png", name, scheme)
            take(browser, server.address + VIEWS["analyse"], config.folder / "page_phone.png", "phone", "light")
            browser.close()
    print(f"{config.folder} holds {2 * len(VIEWS) + 1} pictures of the page.")


def make_something_to_watch(folder: Path) -> None:
    """Two runs and a tournament of tic-tac-toe."""
    for name, rate in (("careful", "0.002"), ("bold", "0.02")):
        run = f"train --game tictactoe --run {folder / 'runs' / name} --generations 12 --learner.learning-rate {rate}"
        alphazero([*run.split(), *TINY.split(), "--evaluation.games", "2", "--evaluation.opponents", "random"])
    contestants = "pit random greedy minimax:2 minimax:4 mcts:50 --game tictactoe --games 40 --folder"
    alphazero([*contestants.split(), str(folder / "tournaments" / "cup")])


def take(browser: Any, address: str, path: Path, name: str, scheme: str) -> None:
    """One picture, once the view shows what it is for."""
    size = PHONE if name == "phone" else DESKTOP
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    context.set_default_timeout(300_000)
    page = context.new_page()
    page.goto(address)
    if name in ("analyse", "phone"):
        page.get_by_role("button", name="Review the game").click()
        page.wait_for_selector(".accuracy")
        page.wait_for_function(
            "() => Number.parseInt(document.querySelector('.desk .numbers')?.textContent?.replaceAll(',', '')) > 2000"
        )
    elif name == "play":
        page.wait_for_function("() => /Your turn/.test(document.querySelector('.headline .status')?.textContent)")
        page.get_by_role("button", name="Hint", exact=True).click()
        page.wait_for_selector(".stage .best")
    elif name == "runs":
        page.locator(".choices input").nth(1).wait_for()
        for box in page.locator(".choices input:not(:checked)").all():
            box.click()
        page.wait_for_function("() => document.querySelectorAll('.legend li').length === 2")
    else:
        page.wait_for_selector(".standings tbody tr")
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(500)
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    sys.exit(run_command(main))
