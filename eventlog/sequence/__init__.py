"""Whole transactions in their order, each once: what all sources share.

delivery       what a source hands out: a transaction, and the state after it
ordered        all inputs of a task by their sequence, sorted on disk
transactions   complete by their counters, in the order of their ends
waiting        transactions that wait for their changes, wherever these are kept
commits        the commits of captures and queues
progress       what of change tables was delivered; `topic_progress` how far topics
ranges         sets of counters and offsets
settings       how a stream is read
"""
