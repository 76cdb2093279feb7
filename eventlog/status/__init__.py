"""The state of a log, as `status`, the pages, the metrics and /readyz show it.

log_status     the facts, read from the log
backlog_trend  the pending rows over the last minute, and when the backlog ends
verdict        the states in sentences, by their consequence
log_watch      one look for all who ask a process, and the state of a log that cannot be read
"""
