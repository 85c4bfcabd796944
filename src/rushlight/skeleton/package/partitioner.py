"""What the backend takes of a graph."""

from collections.abc import Mapping

import torch
from rushlight.partition import (
    DelegationSpec,
    SupportedOperatorPartitioner,
    WhyNoPartitionReporter,
)
from torch.fx import Node
from torch.fx.passes.operator_support import OperatorSupportBase

from .preprocess import SkeletonBackend, refusal


class _Support(OperatorSupportBase):
    def __init__(self, reporter: WhyNoPartitionReporter) -> None:
        self._reporter = reporter

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        reason = refusal(node)
        if reason is not None:
            self._reporter.report_reject(node, reason)
        return reason is None


class SkeletonPartitioner(SupportedOperatorPartitioner):
    """Takes all that the backend has instructions for, in as few parts as can be."""

    def __init__(self) -> None:
        reporter = WhyNoPartitionReporter()
        super().__init__(
            DelegationSpec(SkeletonBackend.__name__),
            _Support(reporter),
            reporter=reporter,
            own_state=False,
        )
