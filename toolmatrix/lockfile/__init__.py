"""Answers written down: the model of a lock, its text, its seal, reading it back, comparing two."""
