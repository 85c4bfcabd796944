"""ExecuTorch's passes over single graphs, for scripts that put their own lowering together.

`rushlight.pipeline` needs none of them: its stages do the same over whole programs.
"""
