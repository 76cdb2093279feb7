"""The meaning of the event log: the rows of one pick-up become events of objects.

admit        the rows that can be believed: entries, each under a record_id of its own
rules        the settings, the fates of rows, and the rows that take no part
understand   the meaning of a row                             (event-log, section 4, rule 0)
runs         what a query-back supersedes in an object's life, its content, and the
             changes that consecutive rows become, cut where they are long  (rules 1 to 4)
plan         the pick-up as a whole: the current rows that it needs, the order in
             which its events leave, and the outcome of every row          (rules 5 to 8)
"""

from eventlog.core.identity import ObjectName
from eventlog.fold.plan import Event, Need, Plan, event_id, plan, plan_again, whole_objects
from eventlog.fold.rules import Fate, Outcome, Rules, assumed_present, present_of
from eventlog.fold.runs import CurrentOrError, CurrentRow
from eventlog.fold.understand import QueryKey, query_key

__all__ = [
    "CurrentOrError",
    "CurrentRow",
    "Event",
    "Fate",
    "Need",
    "ObjectName",
    "Outcome",
    "Plan",
    "QueryKey",
    "Rules",
    "assumed_present",
    "event_id",
    "plan",
    "plan_again",
    "present_of",
    "query_key",
    "whole_objects",
]
