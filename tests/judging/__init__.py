"""Judges: what they find in a small matrix whose faults are known."""
