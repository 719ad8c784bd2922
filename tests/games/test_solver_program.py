"""Another solver program as a second opinion: small programs that answer rightly, wrongly, late or not at all."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alphazero.commands.shared import run_command
from alphazero.errors import InputError
from games.connect4 import benchmark
from games.connect4.solver import Solver, confirmation
from games.connect4.solver.confirmation import confirm
from games.connect4.solver.labelled import Labelled, load_file, load_frozen
from games.connect4.solver.notation import GAME

# with a win at once, with two columns left, an early one, and the first again: 6, 2 and 7 children are not over
LINES = ["121212 18", "2252576253462244111563365343671351441 -1", "21 2", "121212 18"]
DRAWN_BUT_FOR_ONE_SQUARE = "72132773711227133511237325555546666664444"

HEAD = """
import json, os, sys, time
from pathlib import Path
folder = Path(__file__).parent
with open(folder / "pids.txt", "a") as file:
    file.write(f"{os.getpid()}\\n")
scores = json.loads((folder / "scores.json").read_text())
"""


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(threads=1)


@pytest.fixture
def positions(tmp_path) -> Path:
    path = tmp_path / "positions.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture
def labelled(positions, solver) -> Labelled:
    return load_file(positions, solver)


@pytest.fixture
def expected(tmp_path, solver) -> dict[str, int]:
    """What must be asked, and the right answers; the programs read them from a file beside them."""
    scores = {}
    for moves in dict.fromkeys(line.split()[0] for line in LINES):
        position = GAME.position([int(move) - 1 for move in moves])
        for action in position.legal_actions:
            child = position.play(action)
            if not child.terminal:
                scores[f"{moves}{action + 1}"] = solver.solve(child)
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    return scores


@pytest.fixture
def program(tmp_path, expected):
    """From the code of a program to the command that runs it; afterwards none of them may be running."""

    def write(code: str) -> str:
        path = tmp_path / f"program{len(list(tmp_path.glob('program*.py')))}.py"
        path.write_text(HEAD + code)
        return shlex.join([sys.executable, str(path)])

    yield write
    left = running(tmp_path)
    assert not left, f"still running: {left}"


def running(tmp_path: Path) -> list[int]:
    """The process ids that programs have noted, of those that still exist."""
    file = tmp_path / "pids.txt"
    return [int(pid) for pid in file.read_text().split() if os.path.exists(f"/proc/{pid}")] if file.exists() else []


def refusal(labelled: Labelled, command: str) -> str:
    """The sentence with which `confirm` fails."""
    with pytest.raises(InputError) as caught:
        confirm(labelled, command)
    said = str(caught.value)
    assert "\n" not in said and (not command.strip() or command in said or repr(command) in said)
    return said


# --- programs that are right ---

RIGHT = {
    "line by line": """
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
""",
    "with more words": """
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], 123456, "nodes", 7.5, flush=True)
""",
    "at the end of its input": """
for line in sys.stdin.read().split():
    print(line, scores[line])
""",
    "with blank lines and spaces": """
for line in sys.stdin:
    print(f"\\n  {line.strip()}\\t{scores[line.strip()]}  \\n", flush=True)
""",
    "and says more on its standard error": """
print("thinking " * 20000, file=sys.stderr)
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
""",
    "and ends badly after the last answer": """
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
sys.exit(3)
""",
    "and does not end": """
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
time.sleep(60)
""",
    "and says more than it was asked": """
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
print("good bye")
""",
}


@pytest.mark.parametrize("how", RIGHT)
def test_right_answers_are_accepted_and_counted(how, program, labelled, expected):
    begin = time.monotonic()
    assert confirm(labelled, program(RIGHT[how])) == len(expected) == 15
    assert time.monotonic() - begin < 20


def test_a_program_is_asked_once_about_every_child_that_is_not_over(program, labelled, expected, tmp_path):
    code = """
with open(folder / "asked.txt", "a") as file:
    for line in sys.stdin:
        file.write(line)
        file.flush()
        print(line.strip(), scores[line.strip()], flush=True)
"""
    confirm(labelled, program(code))
    asked = (tmp_path / "asked.txt").read_text().splitlines()
    assert len(asked) == len(set(asked)) and set(asked) == set(expected)
    assert "1212127" in asked and "1212121" not in asked


def test_nothing_is_asked_where_every_child_is_over(program, solver, tmp_path):
    position = GAME.position([int(move) - 1 for move in DRAWN_BUT_FOR_ONE_SQUARE])
    assert position.ply == 41 and not position.terminal
    file = tmp_path / "last.txt"
    file.write_text(f"{DRAWN_BUT_FOR_ONE_SQUARE} {solver.solve(position)}\n")
    assert confirm(load_file(file, solver), program("sys.stdin.read()")) == 0


@pytest.mark.parametrize("how", ["line by line", "at the end of its input"])
def test_the_frozen_set_is_confirmed_though_pipes_hold_only_a_part_of_it(how, program, tmp_path):
    frozen, answers = load_frozen(), {}
    for moves, row in zip(frozen.moves, frozen.column_scores.tolist(), strict=True):
        win_at_once = 21 - len(moves) // 2
        answers |= {f"{moves}{i + 1}": -score for i, score in enumerate(row) if score not in (-100, win_at_once)}
    (tmp_path / "scores.json").write_text(json.dumps(answers))
    assert confirm(frozen, program(RIGHT[how])) == len(answers) > 35_000


# --- programs that are wrong ---


def test_a_wrong_score_is_said_with_its_position_and_both_scores(program, labelled, expected):
    wrong = list(expected)[3]
    code = f"""
scores[{wrong!r}] += 1 if scores[{wrong!r}] < 0 else -1
for line in sys.stdin:
    print(line.strip(), scores[line.strip()], flush=True)
time.sleep(60)
"""
    command, right = program(code), expected[wrong]
    said = right + 1 if right < 0 else right - 1
    assert refusal(labelled, command) == f"{command} gives {wrong} the score {said}, but its label is {right}"


def test_a_score_of_the_opposite_sign_is_refused(program, labelled, expected):
    command = program("for line in sys.stdin: print(line.strip(), -scores[line.strip()], flush=True)")
    first = next(moves for moves, score in expected.items() if score)
    assert f"gives {first} the score {-expected[first]}, " in refusal(labelled, command)


@pytest.mark.parametrize(("score", "limits"), [(19, "-17 and 18"), (-18, "-17 and 18"), (1000000, "-17 and 18")])
def test_an_impossible_score_is_refused(score, limits, program, labelled, expected):
    command, first = program(f"for line in sys.stdin: print(line.strip(), {score}, flush=True)"), next(iter(expected))
    low_and_high = f"it must lie between {limits}"
    assert refusal(labelled, command) == f"{command} gives {first} the score {score}, but {low_and_high}"


@pytest.mark.parametrize(
    "answer",
    [
        "'4453', scores[line]",  # of another position
        "line",  # no score
        "scores[line]",
        "line, 'five'",
        "line, 1.0",
        "line, '+' + str(scores[line])",
        "line + '1', scores[line]",
        "'Connect Four solver, version 2.0'",
        "'x' * 100000",
        "'\\0\\x1b[31m'",
    ],
)
def test_what_is_no_answer_is_refused_with_the_position(answer, program, labelled, expected):
    command = program(f"for line in sys.stdin.read().split(): print({answer}, flush=True)")
    said, first = refusal(labelled, command), next(iter(expected))
    assert f" to {first}; it should begin with {first} and the score" in said
    assert len(said) < len(command) + 250 and said.isprintable()


def test_a_score_of_thousands_of_digits_is_refused_in_one_short_line(program, labelled, expected):
    command = program("for line in sys.stdin: print(line.strip(), '9' * 5000, flush=True)")
    said = refusal(labelled, command)
    assert next(iter(expected)) in said and len(said) < len(command) + 250


@pytest.mark.parametrize("line", ["'x'", "'9' * 5000"])
def test_an_answer_without_end_is_not_read_to_its_end(line, program, labelled, expected, monkeypatch):
    monkeypatch.setattr(confirmation, "PATIENCE", 5.0)
    command = program(f"while True: print({line}, end='', flush=True)")
    assert f" to {next(iter(expected))}; it should begin with" in refusal(labelled, command)


def test_answers_that_are_no_text_are_refused(program, labelled, expected):
    command = program("sys.stdout.buffer.write(bytes(range(128, 256)) + b'\\n'); sys.stdout.flush(); time.sleep(60)")
    assert f" to {next(iter(expected))}; it should begin" in refusal(labelled, command)


def test_answers_in_another_order_are_refused(program, labelled, expected):
    command = program("for line in sys.stdin.read().split()[::-1]: print(line, scores[line])")
    first, last = next(iter(expected)), list(expected)[-1]
    assert f"{last} {expected[last]}' to {first}; " in refusal(labelled, command)


def test_too_few_answers_are_said_with_the_first_position_that_has_none(program, labelled, expected):
    command = program("for line in sys.stdin.read().split()[:-2]: print(line, scores[line])")
    missing = list(expected)[-2]
    assert refusal(labelled, command) == f"{command} ended (exit code 0) without an answer to {missing}"


def test_a_program_that_fails_is_said_with_its_exit_code_and_its_last_words(program, labelled, expected):
    command = program("print('reading\\n\\nno book here', file=sys.stderr); sys.exit(3)")
    said = refusal(labelled, command)
    assert said.startswith(f"{command} ended (exit code 3, saying 'no book here') ") and next(iter(expected)) in said


def test_a_program_that_fails_later_is_said_with_the_position_it_failed_at(program, labelled, expected):
    code = """
for i, line in enumerate(sys.stdin):
    if i == 4:
        raise RuntimeError("lost\\nthe way " + 1000 * "!")
    print(line.strip(), scores[line.strip()], flush=True)
"""
    command = program(code)
    said = refusal(labelled, command)
    assert "exit code 1, saying '" in said and said.endswith(f"without an answer to {list(expected)[4]}")
    assert "the way !!!" in said and len(said) < len(command) + 300


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-solver --fast", "No such file"),
        ("/", "ermission denied"),
        ("solver 'unclosed", "No closing quotation"),
        ("solver \0", "null byte"),
    ],
)
def test_a_program_that_cannot_be_started(command, reason, labelled):
    said = refusal(labelled, command)
    assert said.startswith(f"cannot start the solver program {command!r}: ") and reason in said


@pytest.mark.parametrize("command", ["", "  "])
def test_an_empty_command_is_refused_in_words(command, labelled):
    said = refusal(labelled, command)
    assert said.startswith("cannot start the solver program ") and "index" not in said


@pytest.mark.parametrize(
    "code",
    [
        "time.sleep(60)",
        "sys.stdin.read(); time.sleep(60)",
        "os.close(0); time.sleep(60)",
        "print('4453', end='', flush=True); time.sleep(60)",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
    ],
)
def test_a_program_that_never_answers_is_given_up(code, program, labelled, expected, monkeypatch):
    monkeypatch.setattr(confirmation, "PATIENCE", 0.5)
    command, begin = program(code), time.monotonic()
    said = refusal(labelled, command)
    assert 0.5 <= time.monotonic() - begin < 10
    assert said.startswith(f"{command} has not answered to {next(iter(expected))} for ")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
def test_a_program_is_ended_with_its_children(program, labelled, tmp_path, monkeypatch):
    monkeypatch.setattr(confirmation, "PATIENCE", 0.5)
    child = "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    note = "open(folder / 'pids.txt', 'a').write(f'{child.pid}\\n')"
    begin = time.monotonic()
    refusal(labelled, program(f"{child}; {note}; time.sleep(60)"))
    assert time.monotonic() - begin < 30  # the child holds the pipes open, and waiting for it would take a minute
    assert len((tmp_path / "pids.txt").read_text().split()) == 2
    end = time.monotonic() + 10
    while running(tmp_path) and time.monotonic() < end:  # who takes an orphan over needs a moment to let it go
        time.sleep(0.02)
    assert not running(tmp_path)


@pytest.mark.parametrize(
    "command", ["setsid sleep 20 & sleep 100", "exec 3<&0; setsid sleep 20 <&3 >&2 & exec 3<&- >&-; sleep 100"]
)
def test_a_child_that_holds_the_pipes_is_not_waited_for(command, monkeypatch):
    """It has left the program's group, so nobody ends it; in the second case it does not read what it is sent."""
    monkeypatch.setattr(confirmation, "PATIENCE", 0.5)
    begin = time.monotonic()
    with pytest.raises(InputError, match="without an answer to|has not answered to"):
        list(confirmation._ask(shlex.join(["sh", "-c", command]), ["4453"] * 100_000))
    assert time.monotonic() - begin < 10


def test_the_message_says_how_long_it_has_waited(program, labelled, monkeypatch):
    monkeypatch.setattr(confirmation, "PATIENCE", 1.0)
    assert refusal(labelled, program("time.sleep(60)")).endswith(" for 1 s")


def test_patience_is_for_each_answer_and_not_for_all(program, expected, monkeypatch):
    code = """
for line in sys.stdin:
    time.sleep(0.15)
    print(line.strip(), scores[line.strip()], flush=True)
"""
    answers = confirmation._ask(program(code), list(expected))
    next(answers)  # now the program has started
    monkeypatch.setattr(confirmation, "PATIENCE", 1.5)
    assert len(list(answers)) == len(expected) - 1 == 14  # after 2.1 s


def test_a_program_that_closes_its_output_but_does_not_end_is_given_up(program, labelled, expected, monkeypatch):
    wait = subprocess.Popen.wait
    monkeypatch.setattr(
        subprocess.Popen, "wait", lambda process, timeout=None: wait(process, None if timeout is None else 0.5)
    )
    command = program("os.close(1); time.sleep(8)")
    assert refusal(labelled, command) == f"{command} closed its output without an answer to {next(iter(expected))}"


def test_a_program_that_neither_reads_nor_answers_but_ends(program, labelled, expected):
    command = program("os.close(0)")
    assert refusal(labelled, command) == f"{command} ended (exit code 0) without an answer to {next(iter(expected))}"


# --- through the command ---


def run_pons(positions: Path, command: str, *more: str) -> int:
    arguments = ["random", "--positions", str(positions), "--solver-command", command, "--threads", "1", *more]
    return run_command(benchmark.main, arguments)


def test_the_command_says_that_the_labels_are_confirmed(program, positions, expected, capsys):
    command = program(RIGHT["line by line"])
    assert run_pons(positions, command) == 0
    output, errors = capsys.readouterr()
    assert output.startswith(f"{command} confirms the labels ({len(expected)} answers)\nrandom on {positions}: ")
    assert errors == ""


def test_the_command_takes_json_lines_to_confirm_too(program, labelled, expected, tmp_path, capsys):
    file, command = tmp_path / "positions.jsonl", program(RIGHT["line by line"])
    rows = labelled.column_scores.tolist()
    values = [
        {"moves": moves, "scores": [None if score == -100 else score for score in row]}
        for moves, row in zip(labelled.moves, rows, strict=True)
    ]
    file.write_text("\n".join(map(json.dumps, values)))
    assert run_pons(file, command) == 0
    assert f"confirms the labels ({len(expected)} answers)" in capsys.readouterr().out
    values[2]["scores"][3] += 1  # a possible score, but not the right one
    file.write_text("\n".join(map(json.dumps, values)))
    assert run_pons(file, command) == 2
    wrong = -values[2]["scores"][3]
    expected_end = f" gives 214 the score {expected['214']}, but its label is {wrong}\n"
    assert capsys.readouterr().err == f"error: {command}{expected_end}"


WRONG = {
    "a wrong score": "for line in sys.stdin: print(line.strip(), 1 - scores[line.strip()], flush=True)",
    "an impossible score": "for line in sys.stdin: print(line.strip(), 30, flush=True)",
    "garbage": "for line in sys.stdin: print('\\x1b[31mwhat?', flush=True)",
    "no answer": "sys.stdin.read()",
    "failing": "print('one\\ntwo\\nthree', file=sys.stderr); sys.exit(3)",
    "never": "time.sleep(60)",
}


@pytest.mark.parametrize("how", WRONG)
def test_the_command_ends_with_one_line_when_the_program_is_wrong(
    how, program, positions, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(confirmation, "PATIENCE", 0.5 if how == "never" else 20.0)
    command = program(WRONG[how])
    assert run_pons(positions, command, "--json", str(tmp_path / "result.json")) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.startswith(f"error: {command} ") and errors.count("\n") == 1
    assert "121212" in errors and not (tmp_path / "result.json").exists()


def test_the_command_ends_with_one_line_when_there_is_no_such_program(positions, capsys):
    assert run_pons(positions, "no-such-solver") == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.count("\n") == 1
    assert errors.startswith("error: cannot start the solver program 'no-such-solver': No such file or directory")
