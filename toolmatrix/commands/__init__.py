"""The commands, a module each: its function is that of Python, and its signature is that of the command line."""
