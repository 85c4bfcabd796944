"""The runtime of the backend: compiles a payload once, and runs it on the program's memory."""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rushlight.backends.openvino.payload import Order, read_payload
from rushlight.backends.openvino.properties import exact_properties

if TYPE_CHECKING:
    from rushlight.runtime import BackendContext

Array = npt.NDArray[Any]

_DEFAULTS = {"PERFORMANCE_HINT": "LATENCY"}
_NAME = re.compile(rb'<layer [^>]*?name="([^"]+)"')
_BLAMED = re.compile(r"(?:\bname:? |friendly_name )'?([^'\s]+)")


def backend() -> type[OpenvinoRuntime]:
    """The function of the entry point.

    Raises:
        ImportError: if OpenVINO is not installed; it says how to install it.
    """
    try:
        import openvino  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{error}: install OpenVINO's package with `pip install 'rushlight[openvino]'`"
        ) from error
    return OpenvinoRuntime


@dataclass
class _Port:
    """An input or output.

    Attributes:
        index: the index among OpenVINO's inputs or outputs.
        order: the dim order in which the model takes it; () is row-major.
        is_static: whether its sizes never change.
        bound: address, sizes and strides of the program's memory that the request uses now.
        copied: the copy that the request uses instead.
    """

    index: int
    order: Order
    is_static: bool
    bound: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
    copied: Array | None = None


@dataclass
class _Delegate:
    """A loaded delegate.

    Attributes:
        request: runs the model.
        inputs, outputs: the model's inputs and outputs.
        keep: objects whose memory the model refers to.
        is_profiled: whether the request measures its nodes.
    """

    request: Any
    inputs: list[_Port]
    outputs: list[_Port]
    keep: list[Any]
    is_profiled: bool = False


class OpenvinoRuntime:
    """OpenVINO as a backend of the runtime.

    Options (`backend_options` of a load): `device`, and every property of OpenVINO in capital
    letters, such as `INFERENCE_NUM_THREADS`; they take precedence over the program's compile specs.
    """

    def is_available(self) -> bool:
        """Whether OpenVINO finds a device."""
        import openvino

        return bool(openvino.Core().available_devices)

    def version(self) -> str:
        """The version of OpenVINO."""
        import openvino

        return str(openvino.__version__)

    def init(self, context: BackendContext) -> _Delegate:
        """Compile the payload.

        Raises:
            ValueError: if it is damaged, or an option is not known.
            RuntimeError: if OpenVINO refuses it, with OpenVINO's message.
        """
        return _compile(context, is_profiled=False)

    def execute(self, context: BackendContext, delegate: _Delegate, args: tuple[Any, ...]) -> None:
        """Run once; inputs, and outputs with fixed sizes, are used in place without a copy."""
        if context.is_traced and not delegate.is_profiled:
            vars(delegate).update(vars(_compile(context, is_profiled=True)))
        request, inputs, outputs = delegate.request, delegate.inputs, delegate.outputs
        if len(args) != len(inputs) + len(outputs):
            raise ValueError(
                f"the delegate is called with {len(args)} arguments, and its model has "
                f"{len(inputs)} inputs and {len(outputs)} outputs"
            )
        for port, argument in zip(inputs, args[: len(inputs)], strict=True):
            _bind(port, argument, request.set_input_tensor)
        results = list(zip(outputs, args[len(inputs) :], strict=True))
        for port, argument in results:
            if port.is_static and argument.flags.c_contiguous:
                _bind(port, argument, request.set_output_tensor)
        start = time.perf_counter_ns()
        try:
            request.start_async()
            request.wait()
        except RuntimeError as error:
            _blame(context, str(error))
            raise
        for port, argument in results:
            if port.bound is None:
                data = request.get_output_tensor(port.index).data
                if not port.is_static:
                    argument = context.resize(len(inputs) + port.index, data.shape)
                argument[...] = data
        if context.is_traced:
            _report(context, request, start)

    def destroy(self, delegate: _Delegate) -> None:
        """Release the request and the memory that it refers to."""
        delegate.request = None
        delegate.keep.clear()


def _compile(context: BackendContext, *, is_profiled: bool) -> _Delegate:
    """Compile the payload and create a request for it."""
    import openvino

    core = openvino.Core()
    device, config = _config(context, core)
    if is_profiled:
        config["PERF_COUNT"] = True
    payload = read_payload(context.payload)
    keep: list[Any] = []
    try:
        if payload is None:
            compiled = core.import_model(bytes(context.payload), device, config)
        else:
            weights = _tensor(np.frombuffer(payload.weights, np.uint8))
            keep += [payload.weights, weights]
            model = core.read_model(bytes(payload.xml).decode(), weights)
            compiled = core.compile_model(model, device, config)
    except RuntimeError as error:
        _blame(context, str(error))
        raise RuntimeError(
            f"OpenVINO {openvino.__version__} cannot compile it for {device!r} with {config} (the "
            f"devices here are {', '.join(core.available_devices)}): {error}"
        ) from None
    return _Delegate(
        compiled.create_infer_request(),
        _ports(compiled.inputs, payload.inputs if payload is not None else ()),
        _ports(compiled.outputs, ()),
        keep,
        is_profiled,
    )


def _config(context: BackendContext, core: Any) -> tuple[str, dict[str, Any]]:
    """The device and OpenVINO's properties: from the load's options, else from the program, else
    the defaults."""
    options: dict[str, Any] = {k: v.decode() for k, v in context.compile_specs.items()}
    for key, value in context.options.items():
        if key != "device" and not key.isupper():
            raise ValueError(
                f"unknown option {key!r} of OpenvinoBackend: allowed are device and OpenVINO's "
                f"properties in capital letters, such as INFERENCE_NUM_THREADS"
            )
        options[key] = value
    device = options.get("device", "CPU")
    if not isinstance(device, str) or not device:
        raise ValueError(f"the option device is {device!r}, and must be a name such as 'CPU'")
    properties = {k: v for k, v in options.items() if k.isupper()}
    return device, _DEFAULTS | exact_properties(core, device) | properties


def _ports(model_ports: Any, orders: Sequence[Order]) -> list[_Port]:
    listed = list(model_ports)
    orders = orders or [()] * len(listed)
    if len(orders) != len(listed):
        raise ValueError(
            f"the payload's header names {len(orders)} inputs, its model has {len(listed)}"
        )
    ports = []
    for i, (port, order) in enumerate(zip(listed, orders, strict=True)):
        shape = port.get_partial_shape()
        if order and len(order) != len(shape):
            raise ValueError(
                f"the payload's header has the dim order {order} for input {i}: {shape}"
            )
        ports.append(_Port(i, order, shape.is_static))
    return ports


def _bind(port: _Port, argument: Any, set_tensor: Any) -> None:
    """Point the request to the memory of an argument, if it does not already."""
    if isinstance(argument, np.ndarray):
        here = (argument.__array_interface__["data"][0], argument.shape, argument.strides)
        if here == port.bound:
            return
        array = argument.transpose(port.order) if port.order else argument
        if array.flags.c_contiguous:
            set_tensor(port.index, _tensor(array))
            port.bound = here
            return
        port.copied = np.ascontiguousarray(array)  # its layout is not the one of the graph
    else:  # sizes are passed as numbers
        port.copied = np.array(argument, np.int64)
    set_tensor(port.index, _tensor(port.copied))
    port.bound = None


def _tensor(array: Array) -> Any:
    """The array's memory as OpenVINO's tensor, which does not keep the array alive.

    A request keeps its tensors between calls, but arguments are valid for one call only. OpenVINO
    cannot share read-only memory.
    """
    import openvino

    if not array.size:
        return openvino.Tensor(array, shared_memory=False)
    memory = (ctypes.c_char * array.nbytes).from_address(array.__array_interface__["data"][0])
    view: Array = np.ndarray(array.shape, array.dtype, memoryview(memory))
    return openvino.Tensor(view, shared_memory=True)


def _blame(context: BackendContext, message: str) -> None:
    """Report the node that OpenVINO's message is about, and no others that it mentions."""
    payload = read_payload(context.payload)
    known = set(_NAME.findall(payload.xml)) if payload is not None else set()
    for name in _BLAMED.findall(message):
        if name.encode() in known:
            context.fail_at(name)
            return


def _report(context: BackendContext, request: Any, start: int) -> None:
    """Report the time of each node; OpenVINO gives durations but no start times."""
    for info in request.get_profiling_info():
        if info.status == info.Status.EXECUTED:
            stop = start + 1000 * (info.real_time // timedelta(microseconds=1))
            context.event(info.node_name, start, stop)
            start = stop
