"""Watching in a real browser: runs while they train, their generations and games, tournaments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.web.browser import PHONE, fits_phones, needs_chromium, page_at, wait_status
from tests.web.watched import TINY, make_run_and_tournament

pytestmark = needs_chromium
VIEW = "analyse"


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(folder) -> Path:
    """A run and a tournament beside the game; and names that would be markup if they were not text."""
    make_run_and_tournament(folder, "<i>run", 3)
    return folder


def test_two_generations_of_a_run_side_by_side(browser, address):
    with page_at(browser, address("tictactoe")) as page:
        page.get_by_role("button", name="Compare with another").click()
        desks = page.locator(".desk")
        for number, generation in ((0, "0"), (1, "3")):
            selects = desks.nth(number).locator("select")
            selects.nth(0).select_option("run:<i>run")
            selects.nth(1).select_option(generation)
        for number in range(2):
            page.wait_for_function(
                "i => /simulations/.test(document.querySelectorAll('.desk .numbers')[i].textContent)", arg=number
            )
        assert page.locator(".boards svg.drawing").count() == 2
        page.get_by_role("button", name="End the comparison").click()
        assert page.locator(".boards svg.drawing").count() == 1


def test_a_run_is_watched_while_it_trains(browser, server, folder):
    command = [
        sys.executable,
        "-m",
        "alphazero",
        "train",
        "--game",
        "tictactoe",
        "--run",
        str(folder / "runs" / "live"),
    ]
    training = subprocess.Popen([*command, "--generations", "1000000", *TINY], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        with page_at(browser, f"{server.address}#/runs") as page:
            page.locator("[data-run='live']").wait_for()
            for name in ("live", "<i>run"):  # which one is shown at first depends on which was there first
                if not page.locator(f"[data-run='{name}']").is_checked():
                    page.locator(f"[data-run='{name}']").click()
            page.wait_for_function(
                "() => /live, generation|generation [1-9]/.test(document.querySelector('.list')?.textContent)"
            )
            card = page.get_by_label("Run live", exact=True)
            card.locator(".badge.live").wait_for()
            page.locator("figure svg").first.wait_for()
            curves = page.locator("figure svg").count()
            before = page.locator("figure circle").count()
            page.wait_for_function("count => document.querySelectorAll('figure circle').length > count", arg=before)
            assert curves >= 4
            page.wait_for_function("() => document.querySelectorAll('.legend li').length === 2")  # runs in one chart
            assert page.locator("i").count() == 0 and "<i>run" in page.locator(".list").inner_text(), "names are text"
    finally:
        training.terminate()
        training.wait(60)


def test_games_of_a_generation_are_stepped_through(browser, server):
    with page_at(browser, f"{server.address}#/runs") as page:
        card = page.get_by_label("Run <i>run", exact=True)
        if not card.count():
            page.locator("[data-run='<i>run']").check()
        card.get_by_role("button", name="Show games").click()
        card.locator(".games button").first.click()
        wait_status(page, "generation 3, game 1")
        assert page.locator(".move").count() > 5
        page.get_by_role("button", name="One move on").click()
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent.startsWith('1.')")


def test_a_tournament_with_its_standings_and_games(browser, server):
    with page_at(browser, f"{server.address}#/tournaments") as page:
        page.locator(".standings tbody tr").first.wait_for()
        assert page.locator(".standings tbody tr").count() == 3 and "±" in page.locator(".standings").inner_text()
        assert page.locator(".cross tbody tr").count() == 3
        games = page.locator(".games button")
        assert games.count() == 12
        page.get_by_label("Filter the games").fill("minimax greedy")
        page.wait_for_function("() => document.querySelectorAll('.games button').length === 4")
        games.first.click()
        wait_status(page, "minimax:2|greedy")
        page.get_by_role("button", name="To the end").click()
        wait_status(page, "has won|Draw")


VIEW_OF = """
    const load = (name) => import(new URL(name, document.querySelector("script[type=module]").src));
    const rest = (pause = 20) => new Promise((wake) => setTimeout(wake, pause));
"""


POLLED = f"""async () => {{{VIEW_OF}
    const {{ PolledView }} = await load("polled.js");
    class Counted extends PolledView {{
        async look() {{ this.looks = (this.looks ?? 0) + 1; await rest(); }}
        fail(error) {{ throw error; }}
    }}
    const view = new Counted(10), seen = [];
    const count = async () => {{ view.looks = 0; await rest(200); seen.push(view.looks); }};
    for (let i = 0; i < 5; i++) {{ view.shown(); view.hidden(); }}
    await rest(100);
    await count();
    view.shown();
    view.shown();
    view.looks = 0;
    for (let i = 0; i < 6000 && view.looks < 2; i++) await rest(10);
    seen.push(view.looks);
    view.hidden();
    await rest(100);
    await count();
    return seen;
}}"""


GROWING = f"""async () => {{{VIEW_OF}
    const {{ TournamentsView }} = await load("tournaments.js");
    let played = 60;
    const game = (number) => ({{ number, contestants: ["a", "b"], result: "1-0", plies: number }});
    const ask = async (what) => (what === "tournaments"
        ? {{ tournaments: [{{ name: "cup", game: "hex", contestants: 2, played, planned: 99 }}] }}
        : {{ name: "cup", rows: [], remarks: [], cross: null, games: Array.from(Array(played).keys(), game) }});
    const view = new TournamentsView({{ engine: {{ ask }} }}), seen = [];
    const named = (words) => [...view.node.querySelectorAll("button")].find((one) => one.textContent.includes(words));
    document.querySelector("#view").replaceChildren(view.node);
    await view.poll();
    for (const words of ["20 moves", "cup"]) {{
        const games = view.games.querySelector("ul");
        games.scrollTop = 200;
        named(words).focus({{ preventScroll: true }});
        played += 1;
        await view.poll();
        await rest();
        const now = view.games.querySelector("ul");
        seen.push([document.activeElement.textContent, now.children.length, now.scrollTop]);
    }}
    return seen;
}}"""


def test_a_running_tournament_leaves_the_focus_and_the_scroll_alone(browser, server):
    with page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        (game, games, scrolled), (cup, more, still) = page.evaluate(GROWING)
    assert game.endswith("20 moves") and cup.startswith("cup")
    assert (games, scrolled, more, still) == (61, 200, 62, 200)


def test_nobody_asks_for_a_view_that_is_hidden(browser, server):
    with page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        left, looked_at, left_again = page.evaluate(POLLED)
    assert (left, left_again) == (0, 0) and looked_at > 1


SOME_RUNS = f"""{VIEW_OF}
    const {{ RunsView }} = await load("runs.js");
    const run = (name) => ({{ name, game: "hex", generation: 2, generations: 9, seconds: 9, benchmark: {{}} }});
    const rows = (count, loss) => Array.from(Array(count).keys(), (i) => ({{ generation: i + 1, policy_loss: loss }}));
    const whole = (name) => ({{ ...run(name), identity: "a", figures: [], rows: [], warnings: [], shown: [] }});
"""


ANOTHER_RUN = f"""async () => {{{SOME_RUNS}
    let now = {{ identity: "a", rows: rows(2, 1) }};
    const ask = async (what, {{ after }} = {{}}) => (what === "runs"
        ? {{ runs: [run("one")] }}
        : {{ ...whole("one"), identity: now.identity, rows: now.rows.slice(Math.max(0, after)) }});
    const view = new RunsView({{ engine: {{ ask }} }});
    await view.poll();
    now = {{ identity: "b", rows: rows(4, 2) }}; // it has overtaken the one before
    await view.poll();
    await view.poll();
    return view.details.get("one").rows.map((row) => row.policy_loss);
}}"""


def test_curves_are_of_one_run_when_another_takes_its_name(browser, server):
    with page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        assert page.evaluate(ANOTHER_RUN) == [2, 2, 2, 2]


PICKED = f"""async () => {{{SOME_RUNS}
    let shown = [1, 2];
    const ask = async (what) => (what === "runs" ? {{ runs: [run("one")] }} : {{ ...whole("one"), shown }});
    const view = new RunsView({{ engine: {{ ask }} }});
    view.visible = true;
    await view.poll();
    const choice = view.about.querySelector("select"), seen = [choice.value];
    choice.value = "1";
    choice.dispatchEvent(new Event("change"));
    for (shown of [[1, 2, 3], [3, 4]]) {{
        await view.poll();
        seen.push(choice.value);
    }}
    return seen;
}}"""


def test_the_generation_that_somebody_chose_stays_chosen(browser, server):
    with page_at(browser, server.address) as page:
        wait_status(page, "Your turn")
        assert page.evaluate(PICKED) == ["2", "1", "4"], "the newest one, if it is gone"


def test_watching_fits_a_phone(browser, server):
    for view, wanted in (("runs", "figure"), ("tournaments", ".standings tbody tr")):
        with page_at(browser, f"{server.address}#/{view}", PHONE) as page:
            page.locator(wanted).first.wait_for()
            assert fits_phones(page)
