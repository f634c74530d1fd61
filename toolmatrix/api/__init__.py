"""The questions of the command line as functions of Python, and their answers; the commands use nothing else."""
