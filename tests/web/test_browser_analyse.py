"""Analysing in a real browser: growing searches, the truth, mistakes, the chart, the tree."""

from __future__ import annotations

import re

import pytest

from tests.web.browser import (
    CONTRAST,
    DRAWN,
    PHONE,
    each_game,
    fits_phones,
    needs_chromium,
    page_at,
    wait_status,
)

pytestmark = needs_chromium
VIEW = "analyse"
PIECES = "document.querySelectorAll(\".stage .cell[aria-label*='piece']\").length"


GROWS_OR_IS_OVER = """least => {
    const pause = [...document.querySelectorAll(".desk button")].find((button) => button.textContent === "Pause");
    const numbers = document.querySelector(".desk .numbers")?.textContent?.replaceAll(",", "");
    return !pause || pause.disabled || Number.parseInt(numbers) > least;
}"""
"""A search of a small game is over soon: its result is proven, or the most simulations are done."""
PAUSE = """() => {
    const pause = [...document.querySelectorAll(".desk button")].find((button) => button.textContent === "Pause");
    if (!pause || pause.disabled) return false;
    pause.click();
    return true;
}"""
"""Pauses the search in one step, since it may end between a look and a click; says whether it still went on."""


def simulations(page) -> int:
    found = re.match(r"([\d,]+) simulations", page.locator(".desk .numbers").first.inner_text())
    return int(found[1].replace(",", "")) if found else 0


def wait_simulations(page, more_than: int) -> None:
    page.wait_for_function(
        "least => Number.parseInt(document.querySelector('.desk .numbers')?.textContent?.replaceAll(',', '')) > least",
        arg=more_than,
    )


@each_game
def test_an_analysis_grows_pauses_and_goes_deeper(browser, address, game):
    with page_at(browser, address(game)) as page:
        wait_simulations(page, 100)
        page.wait_for_function(GROWS_OR_IS_OVER, arg=simulations(page))
        if page.evaluate(PAUSE):
            page.locator(".desk").get_by_role("button", name="Go on").wait_for()
            now = simulations(page)
            page.wait_for_timeout(600)
            assert simulations(page) == now
        rows = page.locator(".desk .lines").first.locator("tbody tr")
        assert rows.count() > 1 and "%" in rows.first.inner_text()
        assert page.locator(".stage svg.drawing .number").count() > 0, "the board shows the scores"
        page.locator(".desk").get_by_role("button", name="Clear").click()
        wait_simulations(page, 0)


def test_a_button_that_has_done_its_work_leaves_the_focus_on_the_board(browser, address):
    on_the_board = "() => document.activeElement.matches('.stage .cell')"
    with page_at(browser, address("tictactoe", "&moves=b2")) as page:
        wait_simulations(page, 0)
        page.get_by_role("button", name="One move back").focus()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent === 'Start'")
        page.evaluate(DRAWN)
        assert page.evaluate(on_the_board)
        page.get_by_role("button", name="Compare with another").focus()
        for words in ("End the comparison", "Compare with another"):
            page.keyboard.press("Enter")
            page.wait_for_function("words => document.activeElement.textContent === words", arg=words)


@pytest.mark.parametrize(("game", "moves", "words"), [
    ("connect4", "4453", "loses in 18"), ("connect4", "121212", "wins in 1"),
])  # fmt: skip
def test_the_truth_is_shown(browser, address, game, moves, words):
    with page_at(browser, address(game, f"&moves={moves}")) as page:
        page.wait_for_selector(".exact-line.known")
        assert words in page.locator(".exact-line").inner_text() and words in page.locator("#said").inner_text()
        page.wait_for_selector("td.exact")
        assert page.locator("td.exact", has_text="★").count() >= 1
        page.get_by_label("On the board").select_option("exact")
        texts = page.locator(".stage svg.drawing .number").all_text_contents()
        assert len(texts) == page.locator("td.exact").count() and all(re.fullmatch(r"[WDL]\d*", text) for text in texts)


def test_the_focus_stays_while_the_search_grows(browser, address):
    with page_at(browser, address("connect4")) as page:
        wait_simulations(page, 50)
        row = page.locator(".desk .lines tbody button").first
        row.focus()
        word = row.inner_text()
        page.evaluate("() => { window.said = 0; addEventListener('focusin', () => { window.said += 1; }); }")
        page.wait_for_function(GROWS_OR_IS_OVER, arg=simulations(page) + 100)  # a fast machine may be done
        assert page.evaluate("document.activeElement.textContent") == word
        assert page.evaluate("window.said") == 0, "a screen reader would read it again"
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelectorAll('.move').length === 2")
        assert page.locator(".move").nth(1).inner_text() == f"1.{word}"


def test_othello_says_when_the_truth_is_too_far(browser, address):
    with page_at(browser, address("othello")) as page:
        page.wait_for_function("() => document.querySelector('.exact-line')?.textContent.includes('Too far')")


def test_the_policy_without_a_search(browser, address):
    with page_at(browser, address("connect4")) as page:
        page.get_by_label("On the board").select_option("policy")
        page.wait_for_function("() => document.querySelectorAll('.stage .number').length > 0")
        assert all(text.endswith("%") for text in page.locator(".stage .number").all_text_contents())


def review(page) -> None:
    page.get_by_role("button", name="Review the game").click()
    page.wait_for_selector(".accuracy")


def test_mistakes_are_found_by_the_oracle_and_tried_again(browser, address):
    with page_at(browser, address("connect4", "&moves=1212121")) as page:
        review(page)
        assert "exact results" in page.locator(".review-card .numbers").inner_text()
        assert re.search(r"exact results.* \d+ mistakes", page.locator("#said").inner_text())
        first = page.locator(".mistakes li").first
        assert "1. 1" in first.inner_text() and "turns a" in first.inner_text()
        assert page.locator(".move .judged").count() == page.locator(".mistakes li").count() > 1
        assert page.locator(".judged-wrong").count() == page.locator(".mistakes li").count(), "on the chart"
        page.get_by_role("button", name="To the start").click()
        ahead = page.locator(".move.ahead", has=page.locator(".judged")).first
        ahead.wait_for()
        for scheme in ("light", "dark"):
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
            for text in (ahead, ahead.locator(".ply"), ahead.locator(".judged")):
                assert text.evaluate(CONTRAST) >= 4.5
        assert page.locator(".chart-card circle").count() == 8
        page.locator(".desk select").first.select_option("mcts")
        page.wait_for_function("() => document.querySelectorAll('.chart-card circle').length < 2")  # not of both
        assert page.locator(".mistakes li").count() > 1
        page.get_by_role("button", name="Try move 1 again").click()
        wait_status(page, "Your turn")
        assert page.locator(".move").count() == 1 and page.locator(".seat select").first.input_value() == "human"


@pytest.mark.parametrize(
    "game, moves", [("hex", "d4 a1 d5 a2 d3"), ("line_game", "a1 b1 a2 c3 a3"), ("dots_and_boxes", "0 1 2 3 4")]
)
def test_a_review_without_an_oracle_says_so(browser, address, game, moves):
    with page_at(browser, address(game, f"&moves={moves}")) as page:
        review(page)
        assert "an opinion, not the truth" in page.locator(".review-card .numbers").inner_text()
        assert page.locator(".chart-card circle").count() == 6


@each_game
def test_the_chart_and_the_moves_jump(browser, address, game):
    with page_at(browser, address(game)) as page:
        page.locator(".cell.playable").first.wait_for()
        for _ in range(3):
            moves = page.locator(".move").count()
            page.locator(".stage .boards .cell.playable").first.click()
            page.wait_for_function("count => document.querySelectorAll('.move').length > count", arg=moves)
        current = page.locator(".move[aria-current=step]")
        chart = page.locator(".chart-box")
        box = chart.bounding_box()
        chart.click(position={"x": 30, "y": box["height"] / 3})
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent === 'Start'")
        chart.focus()
        page.keyboard.press("Control+End")  # the browser's own
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent.startsWith('1.')")
        assert re.match("Move 1(, [0-9]+%)?$", chart.get_attribute("aria-valuetext"))
        page.locator(".move").nth(2).click()
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent.startsWith('2.')")
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("() => document.querySelector('.move[aria-current=step]')?.textContent.startsWith('1.')")
        assert current.count() == 1


def test_a_slow_click_counts_although_the_search_draws_its_buttons_anew(browser, address):
    """By the mouse, and by the Space key."""
    with page_at(browser, address("othello", "&moves=d3c3")) as page:
        for ply, key in ((3, False), (4, True)):
            wait_simulations(page, 0)
            move = page.locator(".lines tbody button").first
            if key:
                move.focus()
                page.keyboard.press("Space", delay=400)
            else:
                move.click(delay=400)
            page.wait_for_function(
                "moves => document.querySelectorAll('.move').length > moves", arg=ply, timeout=20_000
            )


@pytest.mark.parametrize("release", ["a menu", "outside"])
def test_a_press_whose_release_nobody_hears_does_not_stop_the_page(browser, address, release):
    """A menu of the browser takes the release of the button that opened it; so does another window."""
    with page_at(browser, address("othello", "&moves=d3c3")) as page:
        wait_simulations(page, 0)
        page.evaluate("""() => {
            const press = { isPrimary: true, button: 0, buttons: 1, pointerType: "mouse", bubbles: true };
            document.body.dispatchEvent(new PointerEvent("pointerdown", press));
        }""")
        page.wait_for_timeout(500)  # what was on its way has come
        held = simulations(page)
        page.wait_for_timeout(500)
        assert simulations(page) == held
        event = (
            "new MouseEvent('contextmenu')"
            if release == "a menu"
            else "new PointerEvent('pointermove', {pointerType: 'mouse'})"
        )
        page.evaluate(f"() => dispatchEvent({event})")
        wait_simulations(page, held)


def test_the_tree_is_walked_down_and_up(browser, address):
    with page_at(browser, address("connect4", "&moves=44")) as page:
        wait_simulations(page, 200)
        page.locator(".tree summary").click()
        child = page.locator(".tree tbody button").first
        child.wait_for()
        word = child.inner_text()
        child.click()
        page.wait_for_function("() => document.querySelectorAll('.crumbs button').length === 2")
        assert page.locator(".crumbs").inner_text().endswith(word)
        page.locator(".tree tbody button").first.click()
        page.wait_for_function("() => document.querySelectorAll('.crumbs button').length === 3")
        page.locator(".crumbs button").first.click()
        page.wait_for_function("() => document.querySelectorAll('.crumbs button').length === 1")
        page.locator(".tree tbody button").first.click()
        page.wait_for_function("() => document.querySelectorAll('.crumbs button').length === 2")
        page.get_by_role("button", name="Go there").click()
        page.wait_for_function("() => document.querySelectorAll('.move').length === 4")


def test_the_tree_shows_nothing_of_a_position_that_was_not_searched(browser, address):
    with page_at(browser, address("connect4", "&moves=44")) as page:
        wait_simulations(page, 200)
        page.locator(".tree summary").click()
        page.locator(".tree tbody button").first.wait_for()
        page.wait_for_function(PAUSE)
        page.get_by_role("button", name="One move back").click()
        page.wait_for_function(
            "() => document.querySelector('.tree .numbers').textContent.includes('not been searched')"
        )
        assert page.locator(".tree tbody tr").count() == 0


def test_the_theme_follows_the_system_and_the_switch(browser, address):
    colours = {}
    for scheme in ("light", "dark"):
        with page_at(browser, address("tictactoe", view="play"), color_scheme=scheme) as page:
            page.locator(".cell").first.wait_for()
            look = "getComputedStyle(document.body).backgroundColor"
            colours[scheme] = page.evaluate(look)
            switch = page.locator("#theme")
            switch.click()
            assert switch.get_attribute("aria-label") == "Theme: light" and page.evaluate(look) == colours.get("light")
            switch.click()
            assert page.evaluate(look) != colours["light"]
    assert colours["light"] != colours["dark"]


def test_the_expected_play_is_not_cut_off_on_a_phone(browser, address):
    with page_at(browser, address("dots_and_boxes"), PHONE) as page:
        page.wait_for_function("() => document.querySelectorAll('.desk td.line').length > 5")
        cut = "() => [...document.querySelectorAll('.desk td.line')].filter((one) => one.scrollWidth > one.clientWidth)"
        page.wait_for_function("() => document.querySelector('.desk td.line').textContent.length > 5")
        assert page.evaluate(f"({cut})().length") == 0
        assert page.evaluate(
            "document.querySelector('.desk .scroll').scrollWidth <= document.querySelector('.desk .scroll').clientWidth"
        )


def test_an_analysis_is_not_much_longer_than_a_phone(browser, address):
    """The chart, the review and the tree are folded; nothing is cut off, nor too wide when they are unfolded."""
    with page_at(browser, address("connect4", "&moves=4453"), PHONE) as page:
        page.wait_for_function("() => document.querySelectorAll('.desk td.exact').length === 7")
        wait_simulations(page, 100)
        assert page.evaluate("document.documentElement.scrollHeight") < 1320
        cut = "document.querySelectorAll('.card:not(.moves-card), .card button, .card summary')"
        cut = f"[...{cut}].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        assert page.evaluate(cut) == 0
        page.get_by_text("Expected score of the first player", exact=True).click()
        page.wait_for_function("() => document.querySelector('.chart-box svg').clientWidth > 250")
        page.get_by_text("Review", exact=True).click()
        review(page)
        assert fits_phones(page)
