// The parts of a graph as read from a payload, not yet checked. backends/cpu/payload.h reads them
// from the engine's own payload; Graph::load checks and takes them, from any reader.
#pragma once

#include "rushlight/engine/types/parameters.h"
#include "rushlight/engine/types/view.h"

namespace rushlight::engine {

// Where the elements of a value lie.
enum class Place : uint8_t { Input, Output, Scratch, Constant };

// How a size, stride or offset follows from the inputs' sizes: `a` and `b` number earlier
// expressions. For Constant, a is the value. For InputSize, a is the input and b its dimension, or
// -1 if the input itself is the integer. Division rounds down.
enum class ExpressionKind : uint8_t {
  Constant,
  InputSize,
  Add,
  Multiply,
  FloorDivide,
  Modulo,
  Maximum,
  Minimum,
};
struct Expression {
  ExpressionKind kind = ExpressionKind::Constant;
  int64_t a = 0, b = 0;
};

struct Value {
  // The reader sets dtype, rank, sizes, strides and offset; the graph sets the rest. Sizes, strides
  // and offset are those at the upper bounds of the inputs' sizes.
  View view;
  Place place = Place::Scratch;
  uint32_t index = 0;  // which input, output or constant
  // An expression for each dimension, or -1 where the view's number holds for all inputs. Empty if
  // all do.
  Span<const int32_t> dynamic_sizes;
  Span<const int32_t> dynamic_strides;
  int32_t dynamic_offset = -1;
};

// Memory that nothing writes, aligned for its elements.
struct Constant {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
};

// Spans lie in memory that lives as long as the graph.
struct GraphParts {
  Span<Value> values;
  Span<const Constant> constants;
  Span<const Node> nodes;
  size_t n_inputs = 0;
  size_t n_outputs = 0;
  uint64_t scratch_size = 0;           // bytes of the memory that values in scratch share
  Span<const Expression> expressions;  // none if all sizes are fixed
  // For each input, then each output: the value that has its sizes, or -1 for a number. Empty if
  // there are no expressions.
  Span<const int32_t> arguments;
};

}  // namespace rushlight::engine
