"""toolmatrix: which versions of a machine-learning tool chain go together, and why."""

__version__ = "0.1.0"
