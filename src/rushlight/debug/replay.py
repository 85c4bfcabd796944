"""A script that runs one place of a program alone, on the inputs that it had in a run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from rushlight.capture import capture
from rushlight.debug.compare import Gap
from rushlight.debug.report import sentence
from rushlight.debug.run import Departures
from rushlight.errors import Code, ExportError
from rushlight.files import replacing, write_text

_SCRIPT = '''"""{told}

Runs this operator alone on the inputs that it had, here and in eager.
"""

from pathlib import Path

import torch

import rushlight as rl

program = torch.export.load(Path(__file__).with_suffix(".pt2"))
args, kwargs = program.example_inputs
wanted = program.module()(*args, **kwargs)
module = rl.load(rl.export(program, backend={backend!r}, verify=False).buffer)
results = module(*args, **kwargs)
for one, other in zip(results, wanted):
    error = (torch.as_tensor(one).double() - other.double()).abs()
    print("greatest difference", error.max().item(), "of", other.double().abs().max().item())
    print("at", [int(i) for i in torch.unravel_index(error.argmax(), error.shape)])
rl.export(program, backend={backend!r})  # raises with the reason if it departs
'''


def write_replay(departures: Departures, gap: Gap, path: Path, backend: str) -> None:
    """Write `path`, a script, and the operator with its inputs beside it (.pt2).

    Args:
        departures: the run.
        gap: the value whose place is to be replayed.
        path: of the script.
        backend: the backend's name that the program was made for.

    Raises:
        ExportError: the name is not that of a script, or a file cannot be written.
    """
    if path.suffix != ".py":
        raise ExportError(
            f"the script is called {str(path)!r}: give a name that ends in .py",
            code=Code.INVALID_ARGUMENT,
        )
    program = operator_of(departures, gap)
    try:
        with replacing(path.with_suffix(".pt2")) as file:
            torch.export.save(program, file)
        write_text(path, _SCRIPT.format(told=sentence(gap), backend=backend))
    except OSError as error:
        raise ExportError(
            f"cannot write {str(path)!r}: {error.strerror}; check the path",
            code=Code.ACCESS_FAILED,
        ) from error


def operator_of(departures: Departures, gap: Gap) -> ExportedProgram:
    """The place that computed a value, as a program, with the inputs that it had as examples."""
    reference, known = departures.reference, departures.values
    wanted = reference.nodes[gap.node]
    group = reference.needed([wanted], {n: v for n, v in known.items() if n not in gap.place.names})
    graph, values = Graph(), []
    copies: dict[Node, Node] = {}
    held: dict[str, torch.Tensor] = {}
    read = [
        node
        for node in reference.nodes.values()
        if node.name not in group and any(user.name in group for user in node.users)
    ]
    for node in read:
        copies[node] = graph.placeholder(node.name)
        values.append(known[node.name])
    for name in group:
        node = reference.nodes[name]
        if node.op not in ("placeholder", "get_attr"):
            copies[node] = graph.node_copy(node, lambda n: copies[n])
        elif reference.is_input(name):
            copies[node] = graph.placeholder(name)
            values.append(reference.values[name])
        else:
            held[name] = reference.values[name]
            copies[node] = graph.get_attr(name)
    graph.output((copies[wanted],))
    root = torch.nn.Module()
    for name, tensor in held.items():
        root.register_buffer(name, tensor)
    return capture(GraphModule(root, graph), tuple(values))
