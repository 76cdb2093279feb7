"""The command line: one file for each command, imported when it is called."""

from __future__ import annotations

import gc
import sys
from importlib import import_module

import click

from eventlog import __version__
from eventlog.errors import EventlogError, Misuse

COMMANDS = {
    "demo": "eventlog.cli.demo",
    "install": "eventlog.cli.install",
    "uninstall": "eventlog.cli.install",
    "track": "eventlog.cli.track",
    "untrack": "eventlog.cli.track",
    "resync": "eventlog.cli.resync",
    "check": "eventlog.cli.check",
    "run": "eventlog.cli.run",
    "pause": "eventlog.cli.pause",
    "resume": "eventlog.cli.pause",
    "preview": "eventlog.cli.preview",
    "explain": "eventlog.cli.explain",
    "status": "eventlog.cli.status",
    "errors": "eventlog.cli.errors",
    "redrive": "eventlog.cli.redrive",
    "skip": "eventlog.cli.skip",
    "purge": "eventlog.cli.purge",
    "deliver": "eventlog.cli.deliver",
    "receive": "eventlog.cli.receive",
    "convert": "eventlog.cli.convert",
    "backlog": "eventlog.cli.backlog",
    "import-config": "eventlog.cli.import_config",
    "bench": "eventlog.cli.bench",
}


class Commands(click.Group):
    """The commands by name; `import-config` stands in `import_config`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(import_module(module), cmd_name.replace("-", "_"))
        return command


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, option, given: tell_version(ctx) if given else None,
    help="Show the version and exit.",
)
def cli() -> None:
    """Event logs, change tables and change streams: read, folded, written, with nothing lost."""


def tell_version(ctx: click.Context) -> None:
    """Print the version, and what else is installed under our name."""
    from eventlog import distribution

    click.echo(f"eventlog, version {__version__}")
    if warning := distribution.warning():
        click.echo(f"eventlog: {warning}", err=True)
    ctx.exit()


def main() -> None:
    """Run the command; the exit code is 0 for done, 1 for failed, 2 for misuse."""
    # What we hold are trees of tuples without cycles: the collector would walk them, in a third of the
    # time of a fold, and find nothing.
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as fault:
        fault.show()
        sys.exit(fault.exit_code)
    except click.Abort:
        sys.exit(130)
    except EventlogError as fault:
        tell_fault(fault)
        sys.exit(2 if isinstance(fault, Misuse) else 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


def tell_fault(fault: BaseException) -> None:
    """The error and what caused it, a plain line each."""
    lines = []
    cause: BaseException | None = fault
    while cause is not None:
        lines.append(" ".join(str(cause).split()))
        cause = cause.__cause__
    click.echo("eventlog: " + "\n  because: ".join(dict.fromkeys(lines)), err=True)
