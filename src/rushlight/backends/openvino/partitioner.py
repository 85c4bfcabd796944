"""The partitioner of OpenVINO: chooses the calls that OpenVINO takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from rushlight.backends.openvino.operators import WHOLE, OpenvinoSupport
from rushlight.backends.openvino.preprocess import OpenvinoBackend, read_specs
from rushlight.partition import (
    CompileSpec,
    DelegationSpec,
    PartitionResult,
    SupportedOperatorPartitioner,
    names_in,
)
from rushlight.partition.extract import data_of


class OpenvinoOperatorsSupport(OperatorSupportBase):
    """What OpenVINO takes, for a partitioner of torch's or of the user's own.

    Args:
        op_types_to_skip: operators to leave out, or their names.
        op_names_to_skip: nodes to leave out, by name in the graph.
        enabled_ops_by_name: nodes to take whatever they are, by name.
    """

    def __init__(
        self,
        op_types_to_skip: Collection[str] | None = None,
        op_names_to_skip: Collection[str] | None = None,
        enabled_ops_by_name: Collection[str] | None = None,
    ) -> None:
        self._openvino = OpenvinoSupport(
            names_in("op_types_to_skip", op_types_to_skip or ()),
            names_in("op_names_to_skip", op_names_to_skip or ()),
        )
        self._enabled = names_in("enabled_ops_by_name", enabled_ops_by_name or ())

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        """Whether OpenVINO takes a call."""
        if node.op != "call_function":
            return False
        return node.name in self._enabled or self._openvino.why_not(node) is None


class OpenvinoPartitioner(SupportedOperatorPartitioner):
    """Takes all calls that OpenVINO computes as eager does, in as few partitions as possible.

    Buffers that the model writes stay outside and are passed at every call, so that the program's
    state can still be read and reset.

    Args:
        compile_spec: options of `OpenvinoBackend`, which lists them.
        op_types_to_skip: operators to leave out, or their names (`"aten.add.Tensor"`).
        op_names_to_skip: nodes to leave out, by name in the Edge graph.
        device: OpenVINO's name of the device; a compile spec `device` takes precedence.

    Raises:
        ExportError: for an unknown compile spec, or a single string instead of a list.
    """

    def __init__(
        self,
        compile_spec: Sequence[CompileSpec] = (),
        op_types_to_skip: Collection[str] = (),
        op_names_to_skip: Collection[str] = (),
        *,
        device: str = "CPU",
    ) -> None:
        specs = list(compile_spec)
        if "device" not in read_specs(specs):
            specs.append(CompileSpec("device", str(device).encode()))
        self._openvino = OpenvinoSupport(
            names_in("op_types_to_skip", op_types_to_skip),
            names_in("op_names_to_skip", op_names_to_skip),
        )
        super().__init__(
            DelegationSpec(OpenvinoBackend.__name__, specs),
            self._openvino.why_not,
            keep_whole=WHOLE,
            own_state=False,
        )

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tag what OpenVINO takes; see the class."""
        self._openvino.constants = data_of(exported_program).specs
        return super().partition(exported_program)
