"""Quantised weights as tensors that keep their packed form in exported graphs."""

import rushlight.quantization  # noqa: F401  # imports torchao, or says how to install it
