"""A recurrent layer as a model with ONNX's own operator: the script of a process of the peer.

  python recurrent_onnx.py KIND WEIGHTS.npz MODEL.onnx

torch's exporter may unroll a layer over its time steps; the operator is what is quickest there. It
needs `numpy` and `onnx` alone. The weights have torch's names; the model takes and gives what
`torch.nn.KIND` does.
"""

from __future__ import annotations

import sys
from typing import Any

# To ONNX's order of gates: of LSTM from input, forget, new, output; of GRU from reset, update, new.
_ORDER = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def write(kind: str, weights: dict[str, Any], path: str) -> None:
    """Write the model."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def ordered(name: str) -> Any:
        gates = np.split(weights[name], len(_ORDER[kind]))
        return np.concatenate([gates[i] for i in _ORDER[kind]])

    layers = sum(name.startswith("weight_ih_l") and "rev" not in name for name in weights)
    ways = ["", "_reverse"] if "weight_ih_l0_reverse" in weights else [""]
    hidden, width = weights["weight_hh_l0"].shape[1], weights["weight_ih_l0"].shape[1]
    constants, nodes, x, states = [], [], "x", []

    def constant(name: str, array: Any) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    shape = constant("shape", np.array([0, 0, len(ways) * hidden]))
    for layer in range(layers):
        ends = [f"l{layer}{way}" for way in ways]
        w = constant(f"w{layer}", np.stack([ordered(f"weight_ih_{end}") for end in ends]))
        r = constant(f"r{layer}", np.stack([ordered(f"weight_hh_{end}") for end in ends]))
        both = [[ordered(f"bias_{at}_{end}") for at in ("ih", "hh")] for end in ends]
        b = constant(f"b{layer}", np.stack([np.concatenate(pair) for pair in both]))
        options: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
        direction = "bidirectional" if len(ways) == 2 else "forward"
        out, last = f"y{layer}", f"h{layer}"
        nodes += [
            helper.make_node(
                *(kind, [x, w, r, b], [out, last]),
                hidden_size=hidden,
                direction=direction,
                **options,
            ),
            helper.make_node("Transpose", [out], [f"t{layer}"], perm=[0, 2, 1, 3]),
            helper.make_node("Reshape", [f"t{layer}", shape], [f"x{layer}"]),
        ]
        x = f"x{layer}"
        states.append(last)
    nodes.append(helper.make_node("Concat", states, ["last"], axis=0))
    result = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (x, "last")]
    sequence = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", "batch", width])
    graph = helper.make_graph(nodes, kind, [sequence], result, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


if __name__ == "__main__":
    import numpy as np

    with np.load(sys.argv[2]) as held:
        write(sys.argv[1], dict(held), sys.argv[3])
