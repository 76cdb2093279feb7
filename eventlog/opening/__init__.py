"""From settings to an open log and its tables; used by the publisher, by people's commands and by Spark."""
