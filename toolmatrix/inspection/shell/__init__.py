"""Scripts of shells in an image: what they start, and with which variables."""
