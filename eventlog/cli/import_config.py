"""eventlog import-config: the original driver's exported configuration as eventlog.toml."""

from __future__ import annotations

from pathlib import Path

import click

from eventlog.cli.terminal import print_line, write_output
from eventlog.core.errors import Misuse
from eventlog.netiq import export, translate


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default="-",
    help="a new file  [default: -]",
)
def import_config(file: Path, output: Path) -> None:
    """Read the driver parameters of FILE, an exported configuration or a list of definitions.

    Parameters without a counterpart are reported on standard error, and are comments in the output.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(export.LARGEST + 1)
    except OSError as fault:
        raise export.NotAnExport(file, fault.strerror) from fault
    translation = translate.translate(export.read(file.name, data))
    text = translate.as_toml(file.name, translation)
    if str(output) == "-":
        write_output(text)
    else:
        _write_new(output, text)
    for without in translation.without:
        print_line(f"not carried over: {without}")


def _write_new(output: Path, text: str) -> None:
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Misuse(f"{output} already exists; it was not changed") from None
