"""The state of a log, as `status`, the pages, the metrics and /readyz show it.

log_status     the facts, read from the log
backlog_trend  the pending rows over the last minute, and when the backlog ends
verdict        the state in a sentence, the worst first
"""
