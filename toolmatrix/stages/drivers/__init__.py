"""Compiler drivers: asked for a dry run, and what they print read; one reader for nvcc, one for clang and hipcc."""
