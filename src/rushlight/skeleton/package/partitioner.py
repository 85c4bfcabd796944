"""What the backend takes of a graph."""

from rushlight.partition import DelegationSpec, SupportedOperatorPartitioner

from .preprocess import SkeletonBackend, refusal


class SkeletonPartitioner(SupportedOperatorPartitioner):
    """Takes all that the backend has instructions for, in as few parts as can be."""

    def __init__(self) -> None:
        super().__init__(DelegationSpec(SkeletonBackend.__name__), refusal, own_state=False)
