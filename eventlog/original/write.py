"""A translation as the text of eventlog.toml."""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.original.parameters import Setting
from eventlog.original.translate import Translation, plain, quoted


def write(source: str, translation: Translation) -> str:
    """Return the text of eventlog.toml; parameters that were not translated are comments at its end."""
    return "\n".join([*_lines(source, translation), ""])


def _lines(source: str, translation: Translation) -> Iterator[str]:
    yield f"# The parameters of {plain(source)}, carried over by `eventlog import-config`."
    yield ""
    if translation.url:
        yield "# The password belongs into the environment: EVENTLOG_URL is the same with user:password@."
        yield f"url = {quoted(translation.url)}"
        yield ""
    for name, value, note in translation.lines:
        yield f"# {plain(note)}"
        yield f"{name} = {_toml(value)}"
    if translation.assumed:
        yield ""
        yield "# These are not in the export; they are the original's defaults."
        yield from (f"{name} = {_toml(value)}" for name, value, _ in translation.assumed)
    if translation.without:
        yield ""
        yield "# Not carried over:"
        yield from (f"#   {without}" for without in translation.without)


def _toml(value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quoted(value)
