"""XNNPACK's numbers under its own names: flags of nodes and values, marks, limits.

Flags share bits: each is for the kinds of nodes, or for the values, that its line tells.
"""

from __future__ import annotations

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1

# Of tensors: the id of none, the most dimensions, the bytes that may be read beyond the end.
XNN_INVALID_VALUE_ID = UINT32_MAX
XNN_MAX_TENSOR_DIMS = 6
XNN_EXTRA_BYTES = 16
# Of values of a graph.
XNN_VALUE_FLAG_EXTERNAL_INPUT = 1 << 0
XNN_VALUE_FLAG_EXTERNAL_OUTPUT = 1 << 1
XNN_VALUE_FLAG_PERSISTENT = 1 << 2

# Of a whole graph, when it is made ready to run.
XNN_FLAG_HINT_SPARSE_INFERENCE = 1 << 0
XNN_FLAG_HINT_FP16_INFERENCE = 1 << 1
XNN_FLAG_FORCE_FP16_INFERENCE = 1 << 2
XNN_FLAG_BASIC_PROFILING = 1 << 3
XNN_FLAG_JIT = 1 << 4
XNN_FLAG_YIELD_WORKERS = 1 << 4
XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER = 1 << 5

# Of convolutions.
XNN_FLAG_DEPTHWISE_CONVOLUTION = 1 << 0
XNN_FLAG_INPUT_NHWC = 1 << 1
XNN_FLAG_TENSORFLOW_SAME_PADDING = 1 << 2
# Of products of matrices and fully connected layers; weights are [outputs, inputs] without it.
XNN_FLAG_TRANSPOSE_WEIGHTS = 1 << 0
XNN_FLAG_TRANSPOSE_B = XNN_FLAG_TRANSPOSE_WEIGHTS
XNN_FLAG_TRANSPOSE_A = 1 << 1
XNN_FLAG_TENSORFLOW_RESHAPE_2D = 1 << 2
# Of both: weights stay in float32 where a graph computes in float16.
XNN_FLAG_FP32_STATIC_WEIGHTS = 1 << 3
# Of resizing.
XNN_FLAG_TENSORFLOW_LEGACY_MODE = 1 << 2
XNN_FLAG_ALIGN_CORNERS = 1 << 3
# Of pools and reductions.
XNN_FLAG_KEEP_DIMS = 1 << 6

# Of quantised values: the zero points and scales beyond one for each row, and the least number of
# weights that may share a scale.
XNN_EXTRA_QUANTIZATION_PARAMS = 10
XNN_MIN_BLOCKSIZE = 32
