"""An engine for tests of our side of the Universal Chess Interface, without a rule of any game in it.

python fake_uci_engine.py replay FILE    says what a real engine has said; FILE is a log of `EngineProcess`
python fake_uci_engine.py MODE           a2a3 is its move, but for what MODE makes it do
"""

import re
import sys
import time
from pathlib import Path

OPTIONS = """option name Skill Level type spin default 20 min -20 max 20
option name UCI_LimitStrength type check default false
option name UCI_Elo type spin default 1350 min 1350 max 2850
option name VariantPath type string default <empty>
option name UCI_Variant type combo default chess var chess var gardner var my game
"""


def replay(path: Path) -> None:
    """Answers from the log; a command that is not the next one there ends it."""
    talks = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", path.read_text(), re.MULTILINE)
    for line, (command, answer) in zip(sys.stdin, talks, strict=False):
        if line.strip() != command:
            sys.exit(f"the log has {command!r} here, and not {line.strip()!r}")
        print(answer, end="", flush=True)


def misbehave(mode: str) -> None:
    """What happens in place of an answer to `go`."""
    if mode == "drip":  # never silent for long, and never done
        while True:
            print("info depth 1", flush=True)
            time.sleep(0.05)
    if mode == "flood":  # one line that does not end
        print("i" * (2 << 20), end="", flush=True)
        time.sleep(1000)
    if mode == "crash":
        print("out of ideas", file=sys.stderr)
        sys.exit(3)
    if mode == "hang":
        time.sleep(1000)
    if mode == "endless":
        while True:
            print("info string more", flush=True)
    answers = {"garbage": "bestmove banana", "illegal": "bestmove a1a5", "none": "bestmove (none)", "empty": "bestmove"}
    print(answers[mode], flush=True)


def play(mode: str) -> None:
    """`poor` has no options, and `mute` says nothing; `one-game` leaves when a second game is to begin."""
    games = 0
    for line in sys.stdin:
        match line.split():
            case ["uci"] if mode != "mute":
                print(f"id name fake\n{OPTIONS * (mode != 'poor')}uciok\r", flush=True)
            case ["isready"]:
                print("readyok", flush=True)
            case ["ucinewgame"]:
                games += 1
                if mode == "one-game" and games == 3:  # it is told so when it starts, too
                    sys.exit(0)
            case ["go", *_]:
                if mode in ("well", "one-game"):
                    print("info depth 1 pv\n\nnonsense\x07\n  bestmove\ta2a3  ponder b5b4", flush=True)
                else:
                    misbehave(mode)
            case ["quit"]:
                return


if __name__ == "__main__":
    if sys.argv[1] == "replay":
        replay(Path(sys.argv[2]))
    else:
        play(sys.argv[1])
