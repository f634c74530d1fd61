"""What lies beside the package: hooks, the action, the image of itself, the files that describe the project."""
