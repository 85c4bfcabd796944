"""The engine's graph of a part: sizes, layouts and values, and the rewriting of fx graphs."""
