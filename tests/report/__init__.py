"""Tests of toolmatrix.report."""

from __future__ import annotations
