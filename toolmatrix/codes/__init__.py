"""Findings with a logic of their own; the page of each code is in rules.yaml."""
