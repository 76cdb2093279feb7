"""The revisions of the schema, forward only. Each runs named statements; Alembic keeps which ones have run.

A revision that was released is never edited, and neither are its statements: a change is a further one.
If DDL is not transactional, a revision that was interrupted runs again from its beginning. So each of its
statements has a condition (`if not exists`, `where … is null`), and changes nothing the second time.
"""
