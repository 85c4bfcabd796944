"""How the types of a schema are written in C++, and how values become arguments of these types."""
