"""Observers: what is in an image, an archive, a directory or on this machine, each value with how it was seen."""
