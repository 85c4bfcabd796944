"""The operators that are nodes of their own, one module for each family, and the table of all."""
