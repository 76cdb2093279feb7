"""Containers: what files look like from outside, whatever format stands in them.

csv, jsonlines, parquet, blob, messages    one container each, both directions
inputs      names on the command line become sources
outputs     written records become files, which appear only when complete
growing     a file to which run after run adds
"""
