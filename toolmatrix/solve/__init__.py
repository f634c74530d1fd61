"""Facts and a request into an answer: the problem assembled, solved by `engine`, explained and repaired.

`engine` knows neither components nor facts: its variables, candidates and nogoods are numbers. This package reads no
files and writes no sentences.
"""
