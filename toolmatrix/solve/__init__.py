"""The solver: best combination, shortest refusal, every combination.

``engine`` holds the specification and ``solve``; ``conflict`` explains why nothing fits;
``enumeration`` lists every combination of chosen variables. Nothing here knows what a
component or a fact is: variables, candidates and nogoods are numbers.
"""

from __future__ import annotations

from .engine import Conflict, Problem, Solution, Support, solve

__all__ = ["Conflict", "Problem", "Solution", "Support", "solve"]
