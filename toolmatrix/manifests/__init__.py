"""Files of a project that ask for versions, read without running anything: Dockerfiles, lists of packages, projects."""
