"""Says what is wrong with the installation or a run, `alphazero doctor RUN`; shows a run, `alphazero report RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.commands.options import Overwrite, argument
from alphazero.commands.shared import parse, say, spare_files
from alphazero.doctor.findings import show
from alphazero.errors import InvalidSetting, quote
from alphazero.storage.files import atomic_write, check_output_file
from alphazero.storage.manifest import check_run_folder
from alphazero.training.report import make_report


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

        sections = examine_installation()
    else:
        from alphazero.doctor.run import examine_run

        sections = examine_run(config.run)
    print(show(sections))
    if any(section.wrong for section in sections):
        raise SystemExit(1)


@dataclass(frozen=True)
class ReportConfig:
    """Writes the metrics, pictures, warnings and settings of a run, finished or not, into one HTML file."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run folder, as in runs/connect4-1."""
    output: Annotated[Path | None, argument("FILE.html", "report.html in the run folder")] = None
    """The file to write. The default one is replaced if it is there."""
    overwrite: Overwrite = False


def report(argv: list[str]) -> None:
    config = parse(ReportConfig, argv, command="report")
    output = config.output or config.run / "report.html"
    check_run_folder(config.run)
    if output.suffix not in (".html", ".htm"):
        raise InvalidSetting(f"--output takes a file that ends in .html, not {quote(str(output), 200)}")
    check_output_file("--output", output)
    spare_files(config.overwrite, config.output)
    atomic_write(output, make_report(config.run).encode(errors="replace"))  # JSON can hold what UTF-8 cannot
    say(f"{output} is written. Open it in a browser.")
