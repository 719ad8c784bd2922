"""A record of what engines hear and say."""

import pytest

from alphazero.players.engine_process import EngineProcess


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every line between us and the engines of a test, commands behind `> `."""
    lines, exchange = list[str](), EngineProcess.exchange

    def listening(engine, commands, is_last):
        lines.extend(f"> {command}" for command in commands)
        answer = exchange(engine, commands, is_last)
        lines.extend(answer)
        return answer

    monkeypatch.setattr(EngineProcess, "exchange", listening)
    return lines
