"""From calls to nodes of the engine's graph."""
