"""What pip calls us: on the package index, `eventlog` is another project."""

from __future__ import annotations

from importlib import metadata

NAME = "eventlog-publisher"
OTHER = "eventlog"


def warning() -> str | None:
    """Return a warning if another project is installed that also writes a package `eventlog`."""
    found = {}
    for name in (NAME, OTHER):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            return None
    problem = (
        f"{OTHER} {found[OTHER]} is installed too: another project, whose files are in the same package."
    )
    return f"{problem} Remove both and install ours again: pip uninstall {OTHER} {NAME}"
