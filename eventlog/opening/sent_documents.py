"""The documents that a publisher sends: their kind, and whether their times have fractions of a second."""

from __future__ import annotations

from eventlog.opening.config import Config
from eventlog.opening.publisher_settings import SessionSettings
from eventlog.sinks import sink_kind
from eventlog.sql.common.time_fractions import WHOLE_SECONDS
from eventlog.xds.xds_settings import XdsSettings


def document_name(config: Config) -> str:
    """Return the name of the kind of documents that the sink sends."""
    settings: object = config.build(sink_kind(config.build(SessionSettings).sink).settings)
    return str(getattr(settings, "document", "xds"))


def has_whole_seconds(config: Config) -> bool:
    """Return whether the times of documents have no fractions of a second."""
    return document_name(config) == "xds" and config.build(XdsSettings).time_syntax == WHOLE_SECONDS
