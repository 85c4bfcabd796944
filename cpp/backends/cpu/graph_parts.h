// The parts of a graph as they were read from a payload, none of them checked yet: payload.h reads
// the engine's own payload, and Graph::load takes the parts of any.
#pragma once

#include "rushlight/backends/cpu/parameters.h"
#include "rushlight/backends/cpu/view.h"

namespace rushlight::cpu {

// Where the elements of a value lie.
enum class Place : uint8_t { Input, Output, Scratch, Constant };

struct Value {
  View view;  // dtype, rank, sizes, steps, offset; the graph adds the others
  Place place = Place::Scratch;
  uint32_t index = 0;  // which input, output or constant
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
  Span<const Step> steps;
  size_t n_inputs = 0;
  size_t n_outputs = 0;
  uint64_t scratch_size = 0;  // bytes of the memory that values in scratch share
};

}  // namespace rushlight::cpu
