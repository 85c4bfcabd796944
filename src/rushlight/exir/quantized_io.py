"""Programs that take and return integers: the outer calls that quantise and dequantise are removed,
and methods that return their scales and zero points are added."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # its operators
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from rushlight.edge.export_pass import ExportPass
from rushlight.errors import Code, ExportError
from rushlight.exir.tensors import scalar_type_enum

_QUANTIZE = torch.ops.quantized_decomposed.quantize_per_tensor.default
_DEQUANTIZE = torch.ops.quantized_decomposed.dequantize_per_tensor.default
_KEYS = ("scale", "zp", "quant_min", "quant_max", "dtype")
_INTEGERS = (torch.int8, torch.uint8, torch.bool, torch.int16, torch.uint16)


def _refuse(message: str) -> ExportError:
    return ExportError(message, code=Code.INVALID_ARGUMENT)


def get_config_method_name(
    prefix: str | None = "forward", arg_type: str = "input", index: int = 0, key: str = "scale"
) -> str:
    """The name of the method that returns a parameter, such as `forward_input0_scale`.

    Args:
        prefix: the name of the method whose input or output it is; None for none.
        arg_type: "input" or "output".
        index: which of them.
        key: "scale", "zp", "quant_min", "quant_max" or "dtype".
    """
    if arg_type not in ("input", "output") or index < 0 or key not in _KEYS:
        raise _refuse(
            f"there is no parameter {key!r} of {arg_type!r} {index}: those of an input or output "
            f"from 0 on are {', '.join(_KEYS)}"
        )
    return f"{prefix}_{arg_type}{index}_{key}" if prefix else f"{arg_type}{index}_{key}"


def quantize_input(
    exported_program: ExportedProgram, input_index: int, qparams: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """Let an input be given as integers; the program is changed.

    Args:
        exported_program: its input is only used by a call that quantises it.
        input_index: which input.
        qparams: "scale", "zp" and "dtype" of other integers, which the program converts.

    Returns:
        Scale, zero point, least and greatest integer, and dtype.

    Raises:
        ExportError: something else uses the input.
    """
    graph = exported_program.graph
    name = exported_program.graph_signature.user_inputs[input_index]
    given = next(n for n in graph.nodes if n.op == "placeholder" and n.name == name)
    users = list(given.users)
    if len(users) != 1 or users[0].target != _QUANTIZE:
        told = ", ".join(str(u.target) for u in users) or "nothing"
        raise _refuse(f"input {input_index} is used by {told}, and not by one call that quantises")
    call = users[0]
    parameters = tuple(call.args[1:])
    if qparams is not None and _differ(qparams, parameters):
        return _convert(graph, given, call, qparams)
    with torch.no_grad():
        given.meta["val"] = call.meta["val"]
    call.replace_all_uses_with(given)
    graph.eliminate_dead_code()
    exported_program.graph_module.recompile()
    return parameters


def _differ(qparams: Mapping[str, Any], parameters: tuple[Any, ...]) -> bool:
    scale, zero, dtype = parameters[0], parameters[1], parameters[4]
    near = abs(qparams["scale"] - scale) <= 1e-8 + 1e-5 * abs(scale)
    return qparams["dtype"] != dtype or not near or bool(qparams["zp"] != zero)


def _convert(graph: Any, given: Node, call: Node, qparams: Mapping[str, Any]) -> tuple[Any, ...]:
    dtype = qparams["dtype"]
    if dtype not in _INTEGERS:
        raise _refuse(f"an input cannot be given as {dtype}: it can as {_INTEGERS}")
    info = torch.iinfo(dtype)
    parameters = (qparams["scale"], qparams["zp"], info.min, info.max, dtype)
    real = given.meta["val"]
    operator: Any = call.target
    is_spelled = operator is not _QUANTIZE
    back: Any = type(operator)(_DEQUANTIZE) if is_spelled else _DEQUANTIZE
    with graph.inserting_before(call):
        dequantized = graph.call_function(back, (given, *parameters))
    dequantized.meta["val"] = real
    given.meta["val"] = real.to(dtype)
    call.replace_input_with(given, dequantized)
    return parameters


def quantize_output(exported_program: ExportedProgram, output_index: int) -> tuple[Any, ...]:
    """Return an output as integers; the program is changed.

    Returns:
        Scale, zero point, least and greatest integer, and dtype.

    Raises:
        ExportError: the output does not come from a call that dequantises.
    """
    graph = exported_program.graph
    output: Any = graph.output_node()
    returned = list(output.args[0])
    if not 0 <= output_index < len(returned):
        raise _refuse(f"there is no output {output_index}: there are {len(returned)}")
    call = returned[output_index]
    if not isinstance(call, Node) or call.target != _DEQUANTIZE:
        raise _refuse(f"output {output_index} does not come from a call that dequantises")
    source: Any = call.args[0]
    returned[output_index] = source
    output.args = (tuple(returned),)
    for spec in exported_program.graph_signature.output_specs:
        if getattr(spec.arg, "name", None) == call.name:
            spec.arg.name = source.name
    graph.eliminate_dead_code()
    exported_program.graph_module.recompile()
    return tuple(call.args[1:])


class _QuantizeIo(ExportPass):
    """What both passes share: they change a manager's program and add its methods."""

    kind = ""

    def __init__(
        self,
        manager: Any,
        chosen: Mapping[int, Any],
        method_name: str | None,
        exported_program: ExportedProgram | None,
    ) -> None:
        super().__init__()
        self.edge_program_manager = manager
        self.param_prefix_name = method_name
        self.exported_program = exported_program
        self.chosen = dict(chosen)
        self.quant_args: dict[int, tuple[Any, ...]] = {}

    @abstractmethod
    def change(self, program: ExportedProgram, index: int) -> tuple[Any, ...]:
        """Change one input or output."""

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the program's graph, and add the methods to the manager."""
        program = self.exported_program
        if program is None:
            name = self.param_prefix_name
            known = self.edge_program_manager.methods
            program = self.edge_program_manager.exported_program(
                name if name in known else "forward"
            )
        for index in self.chosen:
            named = self.quant_args[index] = self.change(program, index)
            if self.edge_program_manager is not None:
                values = (*named[:4], scalar_type_enum(named[4]))
                for key, value in zip(_KEYS, values, strict=True):
                    method = get_config_method_name(self.param_prefix_name, self.kind, index, key)
                    self.edge_program_manager._config_methods[method] = value
        return PassResult(graph_module, True)


class QuantizeInputs(_QuantizeIo):
    """Lets a method take integers.

    Args:
        edge_program_manager: gets the methods that return the parameters.
        quantized_inputs_idx: which inputs; by index, the parameters of other integers or None.
        method_name: the method.
        exported_program: the program to change if there is no manager.
    """

    kind = "input"

    def __init__(
        self,
        edge_program_manager: Any,
        quantized_inputs_idx: Mapping[int, Any] | Iterable[int],
        method_name: str | None = None,
        exported_program: ExportedProgram | None = None,
    ) -> None:
        is_mapping = isinstance(quantized_inputs_idx, Mapping)
        chosen: Any = quantized_inputs_idx if is_mapping else dict.fromkeys(quantized_inputs_idx)
        super().__init__(edge_program_manager, chosen, method_name, exported_program)

    def change(self, program: ExportedProgram, index: int) -> tuple[Any, ...]:
        """Change one input."""
        return quantize_input(program, index, self.chosen[index])


class QuantizeOutputs(_QuantizeIo):
    """Lets a method return integers; the arguments are those of `QuantizeInputs`."""

    kind = "output"

    def __init__(
        self,
        edge_program_manager: Any,
        quantized_outputs_idx_list: Iterable[int],
        method_name: str | None = None,
        exported_program: ExportedProgram | None = None,
    ) -> None:
        chosen = dict.fromkeys(quantized_outputs_idx_list)
        super().__init__(edge_program_manager, chosen, method_name, exported_program)

    def change(self, program: ExportedProgram, index: int) -> tuple[Any, ...]:
        """Change one output."""
        return quantize_output(program, index)


def extract_io_quant_params(
    edge_prog: Any, *, input_idxs: Sequence[int] = (0,), output_idxs: Sequence[int] = (0,)
) -> dict[str, dict[str, dict[str, Any]]]:
    """The parameters of inputs and outputs; the outer calls are removed from the program.

    Returns:
        {"inputs": {name: {"scale": …, "zero_point": …, …}}, "outputs": the same}.
    """
    program = edge_prog.exported_program()
    names = {"inputs": list(program.graph_signature.user_inputs)}
    named: dict[str, dict[str, dict[str, Any]]] = {"inputs": {}, "outputs": {}}
    keys = ("scale", "zero_point", "quant_min", "quant_max", "dtype")
    for index in input_idxs:
        values = quantize_input(program, index)
        named["inputs"][names["inputs"][index]] = dict(zip(keys, values, strict=True))
    for index in output_idxs:
        values = quantize_output(program, index)
        name = str(program.graph.output_node().args[0][index].name)
        named["outputs"][name] = dict(zip(keys, values, strict=True))
    return named
