"""The command line: the module of a command is imported when the command is called."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

import click

from eventlog import __version__
from eventlog.cli import examples
from eventlog.cli.exits import CommandExit, ended, verbose_option
from eventlog.cli.terminal import print_sentence, show
from eventlog.core.errors import EventlogError
from eventlog.core.extras import hide_pandas

# The headings of `eventlog --help`, and the commands under each; the help imports no command.
HEADINGS = {
    "Start": {
        "demo": "Show it at work: a database, changes, their documents, a backlog",
        "install": "Make the event log by migrations, or upgrade it",
        "track": "Log the changes of tables by triggers",
        "check": "Compare the log and its triggers with the catalogue",
        "run": "Publish the log: a daemon, or one cycle",
    },
    "Watch": {
        "status": "Show the state of the log",
        "errors": "List what failed, and why",
        "explain": "Explain the outcome of each row of a log",
        "audit": "Prove that a receiver has what the log promises",
        "preview": "Show what the next cycle would send",
        "history": "List what operators did to the log",
    },
    "Mend": {
        "redrive": "Send failed rows again",
        "retry": "Send waiting events now",
        "skip": "Give rows up, and keep the reason",
        "pause": "Pause the publisher",
        "resume": "Let the publisher continue",
        "purge": "Delete handled rows after a while",
        "resync": "Log an event for rows that exist: the first load",
    },
    "Convert": {
        "convert": "Read any format, write any format",
        "apply": "Make rows of changes, in a database or a lake",
        "rounds": "Show which versions of a lake's tables belong together",
        "capture": "Read a live capture session of Informix or GBase 8s",
        "compare": "Find what changed between two states of a table",
        "backlog": "Convert on Spark what one machine cannot hold",
    },
    "Advanced": {
        "deliver": "Send the documents of a file through any sink",
        "receive": "Receive documents for tests and demos, and show them in a page",
        "import-config": "Translate the original driver's exported configuration",
        "uninstall": "Remove the event log",
        "untrack": "Remove the triggers of tables",
        "bench": "Run a benchmark of the source tree",
    },
}
# The modules that have several commands.
_SHARED = {"uninstall": "install", "untrack": "track"}
_SHARED |= dict.fromkeys(("errors", "redrive", "retry", "skip", "pause", "resume", "purge"), "upkeep")
SUMMARIES = {name: words for summaries in HEADINGS.values() for name, words in summaries.items()}
COMMANDS = {name: f"eventlog.cli.{_SHARED.get(name, name).replace('-', '_')}" for name in SUMMARIES}
_NUMBERS: dict[type, str] = {click.IntRange: "whole number", click.FloatRange: "number"}  # in messages
BENCH = Path(__file__).resolve().parents[2] / "bench"  # of a source tree


class Commands(click.Group):
    """The commands by name; the function of `import-config` is `import_config`."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under the headings of what they are for."""
        listed = self.list_commands(ctx)
        for heading, summaries in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, words) for name, words in summaries.items() if name in listed])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if name != "bench" or BENCH.is_dir()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            raise click.NoSuchCommand(cmd_name, possibilities=COMMANDS, ctx=ctx)
        command: click.Command = getattr(import_module(COMMANDS[cmd_name]), cmd_name.replace("-", "_"))
        if not any(parameter.name == "verbose" for parameter in command.params):
            command.params.append(verbose_option(expose_value=False))
        from eventlog.cli.options import TEXT  # the help of all commands needs no settings

        for parameter in command.params:
            if parameter.type is click.STRING:
                parameter.type = TEXT
            if kind := _NUMBERS.get(type(parameter.type)):
                parameter.type.name = kind
        command.short_help = SUMMARIES[cmd_name]
        command.epilog = examples.shown(cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click itself would treat an end of file as a Ctrl-C."""
        try:
            return super().invoke(ctx)
        except EOFError as fault:
            raise EventlogError(str(fault) or "a file ends too early") from fault
        except KeyboardInterrupt as fault:
            raise ended(fault) from None


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, option, is_set: print_version(ctx) if is_set else None,
    help="Show the version and exit.",
)
def cli() -> None:
    """Publish what changes in a database, convert change records, and show what became of every row.

    Begin with `eventlog demo`, or with docs/start/quick-start.md. Commands reach the log at --url, or at
    the variable EVENTLOG_URL. If something is wrong, `eventlog status` begins with the state of the log, and
    docs/run/night.md has what to look at and what to paste in each state.
    """


def print_version(ctx: click.Context) -> None:
    """Print the version, and what else is installed under our name."""
    from eventlog.cli import distribution

    show(f"eventlog, version {__version__}")
    if warning := distribution.warning():
        print_sentence(warning)
    ctx.exit()


def main() -> None:
    """Run the command; the exit code is 0 for done, 1 for failed, 2 for misuse."""
    # What we hold are trees of tuples without cycles: the collector would walk them, in a third of the
    # time of a fold, and find nothing.
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    hide_pandas()
    # Arrow's own allocator keeps what a batch needed, some 30 MiB of a publisher, and is not faster for it.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    ending = CommandExit()
    sys.exit(ending.carry_out(lambda: cli.main(standalone_mode=False, obj=ending)))
