// The source of targets that are parts of ExecuTorch there, and are always in `executorch` here.
