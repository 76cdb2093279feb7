"""Settings of a publisher that contradict each other: `run` refuses them, `check` names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eventlog.cli.log_options import SINK
from eventlog.cli.options import refuse_flags, refuse_unused_settings
from eventlog.core.errors import Misuse
from eventlog.core.settings import declared
from eventlog.opening.comparing_settings import ComparingSettings
from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import SessionSettings
from eventlog.sinks import SINKS, sink_kind


class Contradiction(NamedTuple):
    """A setting that has no effect as others are, and the remedy."""

    setting: str
    what: str
    remedy: str


def refuse_contradictions(config: Config) -> None:
    """Raise Misuse for a flag that takes no part, and for the first contradiction of settings."""
    refuse_idle_flags(config)
    for contradiction in contradictions(config):
        raise Misuse(f"{contradiction.what}: {contradiction.remedy}")


def refuse_idle_flags(config: Config) -> None:
    """Raise Misuse for a flag of another sink, or of comparing where triggers fill the log."""
    refuse_other_sinks(config)
    if config.build(ComparingSettings).publication_mode == "trigger":
        names = {field.name for field in declared(ComparingSettings)} - {"publication_mode"}
        refuse_flags(names, "takes no part with publication-mode trigger: set another mode, or leave it out")


def refuse_other_sinks(config: Config) -> None:
    """Raise Misuse for a flag of a sink that is not the one of the settings."""
    refuse_unused_settings(SINK, {"the sink", f"sink {config.build(SessionSettings).sink}"})


def contradictions(config: Config) -> Iterator[Contradiction]:
    """Yield the contradictions of settings, whether flags, the environment or a file have them."""
    yield from _of_sinks(config)
    values = config.values
    if "time_of_day" in values and "polling_interval" in values:
        what = "time-of-day and polling-interval both name the times of cycles"
        yield Contradiction("time-of-day", what, "leave one of them out")
    for name in ("monitor_token", "monitor_tokens_file"):
        if values.get(name) and "monitor_port" not in values:
            what = f"{_option_name(name)} is set, and without monitor-port there is no page"
            yield Contradiction(_option_name(name), what, "set monitor-port, or leave the token out")


def _of_sinks(config: Config) -> Iterator[Contradiction]:
    """Yield a setting of a sink where none is chosen, and a kind of documents that the sink does not send."""
    values, sink = config.values, config.build(SessionSettings).sink
    if "sink" not in values:
        for name, setting in _settings_of_sinks():
            if setting in values:
                what = f"{_option_name(setting)} is set and sink is not, so documents go to {sink}"
                yield Contradiction("sink", what, f"set sink to {name}, or to {sink}")
                return
    document = values.get("document", "xds")
    if document != "xds" and (sink, "document") not in _settings_of_sinks():
        what = f"document is {document}, and the sink {sink} sends XDS alone"
        yield Contradiction("document", what, "leave it out, or set another sink")


def _settings_of_sinks() -> list[tuple[str, str]]:
    """Return each setting with the name of its sink."""
    return [(name, field.name) for name in SINKS for field in declared(sink_kind(name).settings)]


def _option_name(name: str) -> str:
    return name.replace("_", "-")
