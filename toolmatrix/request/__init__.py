"""Requests: the words of a user, read with the names of the matrix into what the solver takes, and back to words.

It knows nothing of a command line, an environment, a terminal or a file.
"""
