"""A job: what is to be read and written, and what was left out on the way.

job       what is to be read and written, and how
report    what was left out, and what was decided without being asked
signals   what ends a run from outside
filters   what may not leave, and what a truncate becomes
"""
