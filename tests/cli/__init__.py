"""Tests of toolmatrix.cli."""

from __future__ import annotations
