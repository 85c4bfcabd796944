"""Builds the engine's graph: values, copies, chains of elementwise calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from rushlight.backends.cpu.build.loads import order_of_loads
from rushlight.backends.cpu.build.multiplied import Place, place_of
from rushlight.backends.cpu.build.origins import Origins
from rushlight.backends.cpu.graph import panels as pack
from rushlight.backends.cpu.graph.layout import Layout, NoViewError
from rushlight.backends.cpu.graph.operations import AnyConvolution, WithEpilogue
from rushlight.backends.cpu.graph.rewrite import HALVES, MANY, real
from rushlight.backends.cpu.graph.sizes import (
    Size,
    Sizes,
    at_most_one,
    product,
    same,
    shape_of,
    size_of,
)
from rushlight.backends.cpu.graph.values import EngineNode, Graph, Memory, View, bytes_of
from rushlight.backends.cpu.tiles.assemble import Assembled, TooLongError, assemble, programs
from rushlight.backends.cpu.tiles.clusters import (
    IMAGES,
    Cluster,
    is_number,
)
from rushlight.backends.cpu.tiles.spellings import Spellings
from rushlight.backends.cpu.tiles.terms import Term, constant, term_of
from rushlight.ir.mapped_weights import to_file, were_read
from rushlight.ir.operators import arguments
from rushlight.ir.spec import dim_order_of
from rushlight.schema import cpu_engine as fb
from rushlight.schema.cpu_engine import TileLimit, TileOp

aten = torch.ops.aten

Translate = Callable[["Builder", Node], Any]


class Builder:
    """Makes the engine's graph of one part.

    Args:
        program: the part.
        weights: in which dtype weights of products are stored.
        translate: what makes the nodes of a call that is not elementwise, by its operator; it
            returns the call's value, a view or a list of them.
        multiplied: where constants lie that are weights of linear layers, in any part of the file.
    """

    def __init__(
        self,
        program: ExportedProgram,
        weights: torch.dtype,
        translate: dict[Any, Translate],
        multiplied: frozenset[Place],
    ) -> None:
        self.graph = Graph()
        self._weights = weights
        self._translate = translate
        self._values: dict[Node, Any] = {}
        self._made: dict[tuple[Any, ...], View] = {}
        self._data: dict[Node, torch.Tensor] = {}
        self._half_dtypes: dict[Node, torch.dtype] = {}  # of constants in halves
        self._multiplied: set[Node] = set()
        self._nodes: list[Node] = []
        self.origins = Origins()
        tensors = {**program.constants, **program.state_dict}
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        for node in program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = specs[node.name]
            if spec.kind == InputKind.USER_INPUT:
                self._input(node)
            else:
                data = tensors[str(spec.target)].detach()
                self._data[node] = real(data)
                if data.dtype in HALVES:
                    self._half_dtypes[node] = data.dtype
                if place_of(data) in multiplied:
                    self._multiplied.add(node)

    def _input(self, node: Node) -> None:
        val = node.meta["val"]
        if is_number(node):
            self.graph.inputs.append(size_of(val))
            return
        meta = Layout.dense(shape_of(val), dim_order_of(val), val.dtype)
        memory = Memory(fb.Place.INPUT, bytes_of(meta), len(self.graph.inputs))
        self._values[node] = View(memory, meta)
        self.graph.inputs.append(self._values[node])

    # --- values ---------------------------------------------------------------------------------

    def data(self, node: Any) -> torch.Tensor | None:
        """The elements of a constant; None if it is none."""
        return self._data.get(node)

    def value(self, node: Node) -> Any:
        """The value of a call or input: a view, or a list of views."""
        if node not in self._values:
            self._values[node] = self.weights(node, (node,), lambda: self._data[node].contiguous())
        return self._values[node]

    def set_value(self, node: Node, value: Any) -> None:
        """Set the value of a call."""
        self._values[node] = value

    def has_value(self, node: Node) -> bool:
        """Whether the engine's nodes for a call are made."""
        return node in self._values

    def constant(self, key: tuple[Any, ...], make: Callable[[], torch.Tensor]) -> View:
        """A constant made once for each key."""

        def made() -> View:
            view = self.graph.constant(to_file(make()))
            were_read()
            return view

        return self.once(key, made)

    def weights(self, node: Node, key: tuple[Any, ...], make: Callable[[], torch.Tensor]) -> View:
        """A packed constant in float32. A large one in half precision is stored as it is, and
        converted in each run."""
        if self._data[node].numel() < MANY or not self.is_half(node):
            return self.constant(key, make)

        def widened() -> View:
            stored = self.graph.constant(to_file(make()))
            out = self.new(stored.shape)
            self.copy(stored, out)
            return out

        return self.once(key, widened)

    def is_half(self, node: Node) -> bool:
        """Whether the model has a constant in half precision."""
        return node in self._half_dtypes

    def table(self, node: Node) -> View:
        """A value in row-major order in the model's own dtype: half precision stays so."""
        if not self.is_half(node):
            return self.dense(self.value(node))

        def make() -> torch.Tensor:
            return self._data[node].to(self._half_dtypes[node]).contiguous()

        return self.constant((node, "table"), make)

    def once(self, key: tuple[Any, ...], make: Callable[[], View]) -> View:
        """A value made once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def filled(self, value: float, sizes: Sizes, dtype: torch.dtype) -> View:
        """A number in every element, stored once."""
        key = (float(value), dtype)
        view = self.constant(key, lambda: torch.full((1,), value).to(dtype))
        return view.moved(view.meta.expand(sizes))

    def dtype_of(self, node: Node) -> torch.dtype:
        """The dtype in which weights of products are stored: that of the constant `node`, if it is
        given in a half type."""
        return self._half_dtypes.get(node, self._weights)

    def is_zero(self, node: Node) -> bool:
        """Whether a value is known to be zero in all elements."""
        data = self.data(node)
        if data is not None:
            return not bool(data.any())
        is_filled = node.target in (aten.full.default, aten.full_like.default)
        return is_filled and arguments(node)["fill_value"] == 0

    def is_multiplied(self, node: Node) -> bool:
        """Whether a linear layer of the file has a constant as its weight."""
        return node in self._multiplied

    def linear_weight(self, node: Node) -> View:
        """The panels of a constant matrix [columns, depth], as a linear layer has it."""
        data, dtype = self._data[node], self.dtype_of(node)
        return self.constant((node, "rows"), lambda: pack.panels(data.t(), dtype))

    def matrix(self, node: Node) -> View:
        """The panels of a constant matrix [depth, columns]."""
        data, dtype = self._data[node], self.dtype_of(node)
        return self.constant((node, "columns"), lambda: pack.panels(data, dtype))

    def bias(self, node: Any) -> View | None:
        """A constant bias as products read it; None for none."""
        data = self.data(node)
        if data is None:
            return None
        return self.constant((node, "bias"), lambda: pack.bias(data.float()))

    def new(
        self, sizes: Sequence[Size], order: Sequence[int] | None = None, dtype: Any = torch.float32
    ) -> View:
        """Memory for a result, row-major unless another order of dimensions is asked for."""
        return self.graph.scratch(Layout.dense(sizes, order or range(len(sizes)), dtype))

    def made_of(self, nodes: list[Node]) -> None:
        """Nodes that are added from now on compute these calls."""
        self._nodes = nodes

    def emit(
        self, operation: fb.Operation, inputs: Sequence[View | None], outputs: Sequence[View]
    ) -> EngineNode:
        """Add a node."""
        engine_node = EngineNode(operation, list(inputs), list(outputs), list(self._nodes))
        self.graph.nodes.append(engine_node)
        return engine_node

    def copy(self, source: View, target: View) -> None:
        """Add a node that copies elements to another memory."""
        metas = merged([source.meta, target.meta], target.meta.order())
        one, other = (v.moved(m) for v, m in zip((source, target), metas, strict=True))
        self.emit(fb.Copy(), [one], [other])

    def in_order(self, view: View, order: Sequence[int]) -> View:
        """The value without gaps in this order of dimensions, copied if need be."""
        wanted = Layout.dense(view.shape, order, view.meta.dtype)
        if same_strides(view.meta, wanted):
            return view
        if same(view.meta.numel(), 0):
            return view.moved(wanted)
        target = self.new(view.shape, order, view.meta.dtype)
        self.copy(view, target)
        return target

    def dense(self, view: View) -> View:
        """The value in row-major order, copied if need be."""
        return self.in_order(view, range(view.meta.dim()))

    def rows(self, view: View) -> View:
        """The value as [rows, columns] with neighbouring elements in a row, copied if need be."""
        width = view.shape[-1]
        if any(
            same(s, 0) and not at_most_one(n)
            for n, s in zip(view.shape, view.meta.strides, strict=True)
        ):
            return self.rows(self.dense(view))  # rows with a stride cannot repeat elements
        try:
            meta = view.meta.view((product(view.shape[:-1]), width))
        except NoViewError:
            return self.rows(self.dense(view))
        if not at_most_one(width) and not same(meta.strides[1], 1):
            return self.rows(self.dense(view))
        return view.moved(meta)

    # --- clusters -------------------------------------------------------------------------------

    def begin(self, cluster: Cluster) -> None:
        """Nodes that are added from now on compute the calls of this cluster."""
        self._nodes = cluster.all
        self.origins = Origins(cluster.nodes if cluster.pieces else ())

    def _terms(
        self, nodes: Sequence[Node], load: Callable[[View], View], result: tuple[Node, View] | None
    ) -> Term:
        """The term of the last call; `load` reshapes operands, `result` is the anchor's value."""
        shape = shape_of(nodes[-1])
        terms: dict[Node, Term] = {}

        def load_of(node: Node) -> Term:
            if node in terms:
                return terms[node]
            data = self.data(node)
            if result is not None and node is result[0]:
                terms[node] = Term(TileOp.LOAD, source=result[1])
            elif data is not None and data.numel() == 1:
                terms[node] = constant(data.item())
            else:
                view = self.value(node)
                terms[node] = Term(TileOp.LOAD, source=load(view.moved(view.meta.expand(shape))))
            return terms[node]

        spellings = Spellings()
        for node in nodes:
            terms[node] = spellings.recognized(term_of(node, load_of))
        self.origins.add(nodes, terms)
        return terms[nodes[-1]]

    def terms(self, nodes: Sequence[Node], views: dict[Any, View] | None = None) -> Term:
        """The value of the last of elementwise calls; equal views are loaded as one of `views`."""
        known: dict[Any, View] = {} if views is None else views
        return self._terms(nodes, lambda view: known.setdefault(view.place(), view), None)

    def translated(self, node: Node) -> Any:
        """The value of a call that is not elementwise: a view or a list of them."""
        return self._translate[node.target](self, node)

    def elementwise(self, nodes: Sequence[Node]) -> View:
        """The value of the last of a chain of elementwise calls.

        Raises:
            TooLongError: if its tensors have too many dimensions for one tile program.
        """
        val = nodes[-1].meta["val"]
        return self._tiles(self.terms(nodes), shape_of(val), val.dtype)

    def term(
        self,
        make: Callable[[Callable[[View], Term]], Term],
        sizes: Sizes,
        dtype: torch.dtype = torch.float32,
    ) -> View:
        """The value of a term; `make` is called with a function that loads a view."""
        return self._tiles(make(lambda v: Term(TileOp.LOAD, source=v)), sizes, dtype)

    def _tiles(self, term: Term, sizes: Sizes, dtype: torch.dtype) -> View:
        result = self.new(sizes, order_of_loads(term) or range(len(sizes)), dtype)
        self.store([term], [result])
        return result

    def store(self, terms: Sequence[Term], results: Sequence[View]) -> None:
        """Add nodes that compute terms of equal sizes, as many as are needed.

        Raises:
            TooLongError: if the tensors' strides need too many dimensions.
        """

        def memory() -> View:
            return self.new(results[0].shape, results[0].meta.order())

        whole = self._nodes
        for program in programs(terms, results, memory):
            self.made_of(self.origins.of(program.terms) or whole)
            self._run(program, results)
        self.made_of(whole)

    def _run(self, program: Assembled, results: Sequence[View]) -> None:
        """Add a node that runs a program."""
        order = results[0].meta.order()
        metas = merged([v.meta for v in program.sources], order)
        if metas[0].dim() > TileLimit.RANK:
            sources = [v if v in results else self.in_order(v, order) for v in program.sources]
            metas = merged([v.meta for v in sources], order)
            program.sources[:] = sources
        if metas[0].dim() > TileLimit.RANK:
            raise TooLongError
        engine_node = self.emit(fb.Elementwise(fb.TileProgram(program.code)), [], [])
        engine_node.operands = [v.moved(m) for v, m in zip(program.sources, metas, strict=True)]

    def anchored(self, cluster: Cluster) -> View:
        """The value of a chain that is the epilogue of the call before it.

        Raises:
            TooLongError: if it does not fit one tile program.
        """
        anchor = cluster.anchor
        assert anchor is not None
        last = (cluster.reshapes or [anchor])[-1]
        view: View = self.translated(anchor)
        engine_node = self.graph.nodes[-1]
        self._values[anchor] = view
        is_image = anchor.target in IMAGES
        result = self.as_rows(view, is_image)
        mark = len(self.graph.nodes)

        def load(operand: View) -> View:
            return self.as_rows(operand, is_image)

        term = self._terms(cluster.nodes, load, (last, result))
        # Operands that had to be copied are copied before the product runs.
        copies = self.graph.nodes[mark:]
        del self.graph.nodes[mark:]
        self.graph.nodes[mark - 1 : mark - 1] = copies
        assert isinstance(engine_node.operation, WithEpilogue)
        engine_node.operation.epilogue = self._epilogue(engine_node, term, result)
        return view if is_image else view.moved(view.meta.view(shape_of(cluster.nodes[-1])))

    def as_rows(self, view: View, is_image: bool) -> View:
        """The value as [rows, columns], copied if need be; of images [pixels, channels]."""
        meta = view.meta.permute(_pixels_last(view.meta)) if is_image else view.meta
        try:
            return view.moved(meta.view((product(meta.shape[:-1]), meta.shape[-1])))
        except NoViewError:
            order = _pixels_last(view.meta) if is_image else range(meta.dim())
            return self.as_rows(self.in_order(view, order), is_image)

    def _epilogue(self, engine_node: EngineNode, term: Term, result: View) -> fb.Epilogue:
        inner, low, high = _clamped(term)
        clamp = fb.Epilogue((low, high) != (-math.inf, math.inf), low, high)
        if inner.source is result:
            return clamp
        residual = _added_to(inner, result)
        if residual is not None and _adds(engine_node.operation):
            engine_node.operands = [residual]
            clamp.added = True
            return clamp
        program = assemble([term], [result])
        engine_node.operands = program.sources
        return fb.Epilogue(program=fb.TileProgram(program.code))

    # --- results --------------------------------------------------------------------------------

    def add_output(self, node: Node, index: int) -> None:
        """Make a call's value a result of the part."""
        view = self.value(node)
        # Results of delegates are row-major, whatever the graph says of their strides.
        wanted = Layout.dense(view.shape, range(view.meta.dim()), view.meta.dtype)
        memory = view.memory
        if (
            memory.place is fb.Place.SCRATCH
            and same(bytes_of(wanted), memory.size)
            and same(view.meta.offset, 0)
            and same_strides(view.meta, wanted)
        ):
            memory.place, memory.index = fb.Place.OUTPUT, index
        else:
            self._nodes = [node]
            memory = Memory(fb.Place.OUTPUT, bytes_of(wanted), index)
            self.copy(view, View(memory, wanted))
        self.graph.outputs.append(View(memory, wanted))


def same_strides(one: Layout, other: Layout) -> bool:
    """Whether two layouts of equal sizes have equal strides, dimensions of one element ignored."""
    return all(
        same(a, b) for a, b, n in zip(one.strides, other.strides, one.shape, strict=True) if n != 1
    )


def merged(metas: Sequence[Layout], order: Sequence[int]) -> list[Layout]:
    """Layouts of equal sizes with dimensions in this order, merged to as few as possible."""
    metas = [m.permute(order) for m in metas]
    sizes: list[Size] = []
    strides: list[list[Size]] = []  # of each dimension: one number for each tensor
    for dim, size in enumerate(metas[0].shape):
        own = [m.strides[dim] for m in metas]
        if same(size, 1):
            continue
        if sizes and all(
            same(a, product((b, size))) for a, b in zip(strides[-1], own, strict=True)
        ):
            sizes[-1] = product((sizes[-1], size))
            strides[-1] = own
        else:
            sizes.append(size)
            strides.append(own)
    if not sizes:
        sizes, strides = [1], [[1] * len(metas)]
    return [
        m.as_strided(tuple(sizes), tuple(s[i] for s in strides), m.offset)
        for i, m in enumerate(metas)
    ]


def _pixels_last(meta: Layout) -> list[int]:
    """The order of dimensions with channels last."""
    return [0, *range(2, meta.dim()), 1]


def _clamped(term: Term) -> tuple[Term, float, float]:
    """The term inside the clamps that end a term, and their limits; infinite without clamps."""
    first, low, high = term, -math.inf, math.inf
    while True:
        if term.op is TileOp.RELU:
            low = max(low, 0.0)
        elif term.op is TileOp.MAX_VALUE:
            low = max(low, term.value)
        elif term.op is TileOp.MIN_VALUE:
            high = min(high, term.value)
        else:
            return (term, low, high) if low <= high else (first, -math.inf, math.inf)
        [term] = term.inputs


def _added_to(term: Term, result: View) -> View | None:
    """The residual, if a term only adds a view with dense rows to a product's result; else None."""
    if term.op is not TileOp.ADD or any(one.op is not TileOp.LOAD for one in term.inputs):
        return None
    sources = [one.source for one in term.inputs]
    others = [view for view in sources if view is not result]
    if len(others) != 1 or others[0].meta.dtype != torch.float32:
        return None
    meta = others[0].meta
    return others[0] if at_most_one(meta.shape[1]) or same(meta.strides[1], 1) else None


def _adds(operation: fb.Operation) -> bool:
    """Whether the epilogue of an operation can add a residual to its results."""
    adding = (fb.ConvolutionKind.DENSE, fb.ConvolutionKind.WINOGRAD)
    return not isinstance(operation, AnyConvolution) or operation.kind in adding
