"""Judges: inventory against inventory, or the matrix against itself, into findings. No wording, no output."""
