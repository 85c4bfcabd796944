"""Traces of runs: ETDump files, and what is read out of them. Needs no PyTorch."""
