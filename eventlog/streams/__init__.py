"""Changes of a whole task as one sequence that can be stopped and gone on with.

ordered        all sources of a task by their sequence, sorted on disk
transactions   complete by their counters, in the order of their ends
ranges         sets of counters and offsets
rows_feed      change tables that are read on from a state; `progress` is how far they were handed out
topics_feed    topics likewise; `topic_progress` is how far their partitions were handed out
commits_feed   captures and queues likewise, merged by their commits
delivery       what is handed out: a whole transaction, and the state behind it
"""
