"""Serves the build of Rushlight that this interpreter has installed to `builds.py`.

Programs with quantised values are read from files of `torch.export.save`, which needs their
operators to be defined.
"""

import torch.ao.quantization.fx._decomposed  # noqa: F401

from rushlight.peers import runtimes, side

if __name__ == "__main__":
    side.main(runtimes.COMMANDS, __doc__)
