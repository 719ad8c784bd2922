"""Names of the shipped games' rules, by which folders of runs and tournaments tell whether the rules have changed."""

import sys

import pytest

from alphazero.catalogue import registry
from alphazero.fingerprint import name_rules

NAMES = {
    "breakthrough": "4e67550389ef4bb15d81", "chess": "02ca570e30431e7f0305", "connect4": "364d6d7a72baa8998665",
    "dots_and_boxes": "b3e0100099cee18132e6", "draughts": "df070fb71ee1aa446a57", "gomoku": "5498771cb546042482b2",
    "gardner": "e183a9dc82eb1b676e97",
    "gomoku15": "07e400f2d5f4c73492bf", "hex": "0fb69df110d517f24f28",
    "hex_swap": "6f200b9a03cd195b660a", "nim": "ce7aff685f315e2683f4",
    "othello": "f39306b3b59cd303c031", "othello6": "05bf9363d430889e9c52", "tictactoe": "75d0966ecf2fc4009a1a",
}  # fmt: skip
"""Those of commit 4c28f40 under Python 3.11, but for Nim's, which stay within their arrays since. They hash byte code:
rules written in other words get another name, and a tournament that was begun with them does not go on."""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each version of Python has its own byte code")
@pytest.mark.parametrize("name", NAMES)
def test_rules_that_did_not_change_keep_their_name(name: str):
    assert name_rules(registry.load(name).game) == f"3.11 {NAMES[name]}"
