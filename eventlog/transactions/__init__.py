"""Complete transactions in their order, each once: what all sources share.

delivery         what a source hands out: a transaction, and the state after it
ordered          all inputs of a task in one sequence, sorted on disk
transactions     complete by their counters, in the order of their ends
progress         what was delivered of change tables and of topics
ranges           sets of counters and offsets
stream_settings  how a stream is read
"""
