"""The passes from Core ATen to the Edge dialect, one a file; each changes a graph in place."""
