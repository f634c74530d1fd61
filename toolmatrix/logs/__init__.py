"""Logs of builds and runs: many patterns in one pass, the signatures of known failures, and the causes found."""
