"""Findings and results as text, JSON and other formats: one file each."""
