"""An engine for tests of our side of the Go Text Protocol, without a rule of any game in it.

python fake_gtp_engine.py replay FILE     says what a real engine has said; FILE is a log of `EngineProcess`
python fake_gtp_engine.py game MOVE...    follows one game that it knows; where that passes, its board passes by itself
python fake_gtp_engine.py MODE            takes the first free cell of tic-tac-toe, but for what MODE makes it do
"""

import re
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ["protocol_version", "list_commands", "boardsize", "clear_board", "play", "genmove", "quit"]
CELLS = [f"{column}{row}" for row in "123" for column in "ABC"]


def say(text: str) -> None:
    print(text, end="\n\n", flush=True)


def replay(path: Path) -> None:
    """Answers from the log; a command that is not the next one there is refused."""
    talks = re.findall(r"^> (.*)\n((?:(?!> ).*\n)*?)(?=\n*(?:> |\Z))", path.read_text(), re.MULTILINE)
    for line, (command, answer) in zip(sys.stdin, talks, strict=False):
        if line.strip() != command:
            say(f"? the log has {command!r} here")
            return
        say(answer.rstrip("\n"))


def follow(moves: list[str]) -> None:
    """Plays and hears the moves of one game; of a pass it knows nothing, as gtp-rhino of Debian's grhino."""
    played = 0
    for line in sys.stdin:
        while played < len(moves) and moves[played] == "pass":
            played += 1  # it is the other side's turn at once
        colour = ["black", "white"][played % 2]
        match line.split():
            case ["list_commands"]:
                say("= " + "\n".join(COMMANDS))
            case ["clear_board"]:
                played = 0
                say("=")
            case ["play", who, move] if who == colour and move.lower() == moves[played]:
                played += 1
                say("=")
            case ["genmove", who] if who == colour:
                played += 1
                say(f"= {moves[played - 1]}")
            case ["play", *_] | ["genmove", *_]:
                say("? wrong turn")
            case _:
                say("=")


def misbehave(mode: str) -> None:
    """What happens in place of an answer to `genmove`."""
    if mode == "drip":  # never silent for long, and never done
        while True:
            print("= A1", flush=True)
            time.sleep(0.05)
    if mode == "flood":  # one line that does not end
        print("=" * (2 << 20), end="", flush=True)
        time.sleep(1000)
    if mode == "crash":
        print("out of ideas", file=sys.stderr)
        sys.exit(3)
    if mode == "hang":
        time.sleep(1000)
    if mode == "endless":
        while True:
            print("= more", flush=True)
    answers = {"garbage": "I think I play A1", "illegal": "= Z9", "resign": "= resign", "refuse": "? cannot"}
    say(answers[mode])


def play(mode: str) -> None:
    """What MODE makes of the first free cell.

    `crash-once FILE` crashes unless FILE is there; `child FILE` writes a child's number into it and stays; `one-game`
    leaves when a second game is set up; `crash` with a FILE starts as long as FILE is there; `rectangles` has
    rectangular_boardsize; `squares` refuses two numbers in boardsize.
    """
    if mode == "crash" and len(sys.argv) > 2 and not Path(sys.argv[2]).exists():
        sys.exit(4)
    taken, games = set[str](), 0
    more = {"games": ["set_game", "list_games"], "rectangles": ["rectangular_boardsize"]}
    commands = [*COMMANDS, *more.get(mode, [])]
    for line in sys.stdin:
        words = re.sub(r"#.*", "", line).split()
        match words:
            case ["list_commands"]:
                say("= " + "\n".join(commands if mode != "poor" else commands[:2]))
            case ["boardsize", _, _] if mode == "squares":
                say("? unacceptable size")
            case ["list_games"]:
                say("= Go\nHex")
            case ["clear_board"]:
                games += bool(taken)
                if mode == "one-game" and games:
                    sys.exit(0)
                taken.clear()
                say("=")
            case ["play", _, cell]:
                taken.add(cell)
                say("=")
            case ["genmove", _]:
                if mode in ("crash", "hang", "endless", "drip", "flood", "garbage", "illegal", "resign", "refuse"):
                    misbehave(mode)
                elif mode == "crash-once" and not Path(sys.argv[2]).exists():
                    Path(sys.argv[2]).touch()
                    misbehave("crash")
                else:
                    cell = next(cell for cell in CELLS if cell not in taken)
                    taken.add(cell)
                    # an id that nobody asked for, a carriage return and a tab: all allowed
                    say(f"=7\t{cell.lower()}\r")
            case ["quit"]:
                if mode != "child":
                    say("=")
                    return
            case _:
                say("=")


if __name__ == "__main__":
    if sys.argv[1] == "replay":
        replay(Path(sys.argv[2]))
    elif sys.argv[1] == "game":
        follow(sys.argv[2:])
    elif sys.argv[1] == "mute":
        time.sleep(1000)
    elif sys.argv[1] == "deaf":  # never reads a command, and answers them all
        say("= " + "\n".join(COMMANDS))
        while True:
            say("=")
            time.sleep(0.001)
    else:
        if sys.argv[1] == "child":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
            Path(sys.argv[2]).write_text(str(child.pid))
        play(sys.argv[1])
