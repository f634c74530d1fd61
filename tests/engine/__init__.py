"""Docker's engine and local Debian base images for tests that build and look at real images.

`python -m tests.engine` makes the base images and loads them into the engine that runs.
"""
