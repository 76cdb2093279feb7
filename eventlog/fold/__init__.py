"""The meaning of the event log: the rows of one pick-up become events of objects.

understand   who takes part, and what a row says            (event-log, section 4, rule 0)
lives        what a query-back supersedes in an object's life           (rules 1 to 3)
runs         consecutive rows become one change, cut where it is long         (rule 4)
plan         the pick-up as a whole: which current rows it needs, in which order
             its events leave, and what became of every row          (rules 5 to 8)
chunks       how many objects of a longer input are folded together
"""

from eventlog.core.identity import ObjectName
from eventlog.fold.chunks import whole_objects
from eventlog.fold.current import Answer, CurrentRow
from eventlog.fold.outcome import Fate, Outcome
from eventlog.fold.plan import Event, Need, Plan, event_id, once, plan, plan_again
from eventlog.fold.rules import Rules
from eventlog.fold.understand import QueryKey, query_key

__all__ = [
    "Answer",
    "CurrentRow",
    "Event",
    "Fate",
    "Need",
    "ObjectName",
    "Outcome",
    "Plan",
    "QueryKey",
    "Rules",
    "event_id",
    "once",
    "plan",
    "plan_again",
    "query_key",
    "whole_objects",
]
