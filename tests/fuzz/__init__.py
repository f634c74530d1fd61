"""Fuzzing of the readers of images, packages and logs, by hand: see __main__.py."""
