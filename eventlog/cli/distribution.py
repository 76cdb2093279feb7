"""What pip calls us: on the package index, `eventlog` is another project."""

from __future__ import annotations

from importlib import metadata

NAME = "eventlog-publisher"
NAMESAKE = "eventlog"


def warning() -> str | None:
    """Return a warning if another project is installed that also writes a package `eventlog`."""
    versions = {}
    for name in (NAME, NAMESAKE):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            return None
    problem = f"{NAMESAKE} {versions[NAMESAKE]} is installed too: another project"
    remedy = f"Remove both and install ours again: pip uninstall {NAMESAKE} {NAME}"
    return f"{problem}, whose files are in the same package. {remedy}"
