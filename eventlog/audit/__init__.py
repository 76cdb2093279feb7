"""The receipt: the laws of a delivery, what was delivered, what the log contains, and the judge of both."""
