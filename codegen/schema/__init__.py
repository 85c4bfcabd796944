"""Reads schema/*.fbs; writes the C++ views and the Python dataclasses.

Run as `python -m codegen.schema` from the root of the repository.
"""
