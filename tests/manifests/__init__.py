"""Files of projects, read."""
