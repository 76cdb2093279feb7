"""A log, or other inputs, made into a folder: the job, its folds, and logs that are frozen first."""
