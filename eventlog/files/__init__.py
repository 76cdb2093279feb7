"""Containers: the outer form of files, whatever their format.

csv, jsonlines, parquet, blob, messages    one container each, both directions
inputs      names on the command line become sources
outputs     written records become files, which appear only when complete
growing     a file to which run after run adds
sorted_runs, keyed_store   items beyond what memory holds, sorted or by keys, in nameless files
arrow_stores               both for record batches
"""
