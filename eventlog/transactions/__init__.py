"""Whole transactions in the order of their ends, each once, in bounded memory: what all formats share.

open_transactions  those that have not ended, each with its items; what memory does not hold is in a spool
counted            those whose end counts their changes, which may come in any order
topic_progress     what was read and handed out of topics
delivery           what a source hands out
ranges             sets of counters and offsets
stream_settings    how a stream is read
"""
