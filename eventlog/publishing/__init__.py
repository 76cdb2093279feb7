"""The parts of the publisher: `publisher` runs a cycle, `daemon` says when; these are what they are made of.

opening, session     the log, the tables and the sink, opened from the settings
reading, queryback   a pick-up and its current rows become events
batches, tally       what goes out together and is remembered, what the answers came to
standing             how the log stands; upkeep, explaining and deliver are what people ask for
schedule, wake       times of day, signals and the wake-up
postpoll, records    statements after a cycle, records on standard error
"""
