"""Examines the installation, or a run folder, and says what is wrong: `alphazero doctor runs/connect4-1`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.commands.shared import parse
from alphazero.doctor.findings import is_wrong, show


@dataclass(frozen=True)
class DoctorConfig:
    """Examines the installation, or a run folder, and says what is wrong, with advice.

    It changes nothing, so the run may still be training. The exit code is 1 if something is wrong.
    """

    run: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]")] = None
    """The run folder, as in runs/connect4-1; without it, the installation."""


def main(argv: list[str]) -> None:
    config = parse(DoctorConfig, argv, command="doctor")
    if config.run is None:
        from alphazero.doctor.installation import examine_installation
        from alphazero.doctor.speed import examine_speed

        sections = [*examine_installation(), examine_speed()]
    else:
        from alphazero.doctor.run import examine_run

        sections = examine_run(config.run)
    print(show(sections))
    if is_wrong(sections):
        raise SystemExit(1)
