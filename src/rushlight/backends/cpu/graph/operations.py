"""What several operations of the payload have: an epilogue, a residual, a tile program."""

from __future__ import annotations

from rushlight.schema import cpu_engine as fb

WithEpilogue = (
    fb.Product | fb.Convolution | fb.QuantizedProduct | fb.DynamicProduct | fb.QuantizedConvolution
)
WithResidual = fb.QuantizedProduct | fb.QuantizedConvolution
AnyConvolution = fb.Convolution | fb.QuantizedConvolution


def epilogue_of(operation: fb.Operation) -> fb.Epilogue | None:
    """What is done to the results before they are stored; None for nothing."""
    return operation.epilogue if isinstance(operation, WithEpilogue) else None


def residual_of(operation: fb.Operation) -> fb.QuantizedResidual | None:
    """What is added to results in integers; None for nothing."""
    return operation.residual if isinstance(operation, WithResidual) else None


def program_of(operation: fb.Operation) -> fb.TileProgram | None:
    """The tile program of an elementwise operator, or of an epilogue; None if there is none."""
    if isinstance(operation, fb.Elementwise):
        return operation.program
    epilogue = epilogue_of(operation)
    return None if epilogue is None else epilogue.program
