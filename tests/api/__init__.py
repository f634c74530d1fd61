"""Tests of the questions as functions of Python."""

from __future__ import annotations
