// A graph of ExecuTorch's XNNPACK delegate as plain structs, read from a payload and checked:
// values are numbered in the order of the payload, every node follows those whose results it uses,
// and constants have all their bytes. Images are [N, H, W, C].
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/backends/xnnpack/payload/xnnpack_fb.h"
#include "rushlight/core/dtype.h"
#include "rushlight/core/span.h"

namespace rushlight::xnnpack {

using fb::xnnpack::Datatype;
using fb::xnnpack::NodeKind;

constexpr size_t kMaxRank = 6;
constexpr size_t kMaxInputs = 5;
constexpr uint32_t kNone = 0xFFFFFFFF;

// Bits of the flags of nodes.
constexpr uint32_t kTransposeWeights = 1;
constexpr uint32_t kAlignCorners = 8;
constexpr uint32_t kKeepDims = 64;

struct Shape {
  size_t rank = 0;
  int64_t sizes[kMaxRank] = {};

  int64_t last() const { return rank > 0 ? sizes[rank - 1] : 1; }
};

// What integers stand for: scale * (integer - zero_point).
struct Quantization {
  float scale = 0;  // of all elements, if `scales` is empty
  int32_t zero_point = 0;
  // float32, one for each index of a dimension; bfloat16 of groups. Aligned to nothing.
  Span<const uint8_t> scales;
  size_t channel_dim = 0;
  int64_t group_size = 0;  // neighbours in a row that share a scale; 0 without groups
  int64_t row_dims = 1;    // of what is quantised when it runs: the last dimensions, a row
};

enum class Role : uint8_t { Internal, Constant, Input, Output };

struct Value {
  uint32_t id = 0;  // in the payload
  Role role = Role::Internal;
  Datatype datatype = Datatype::FP32;
  Shape shape;                // as the payload has it: of inputs an upper bound
  StringView key;             // of a constant among the named data
  Span<const uint8_t> data;   // of a constant; aligned to nothing
  Quantization quantization;  // of integers
  uint32_t argument = 0;      // of an input or output: which argument of the delegate
  uint32_t producer = kNone;  // the node that writes it
  uint32_t uses = 0;          // by inputs of nodes
};

// The table of a node, whatever its kind.
class Body : public fb::xnnpack::Node {
 public:
  using fb::xnnpack::Node::Node;
  explicit Body(fb::xnnpack::Node node) : fb::xnnpack::Node(node) {}

  template <typename Table>
  Table as() const {
    return Table(target(1));
  }
};

struct Node {
  NodeKind kind = NodeKind::NONE;
  uint32_t inputs[kMaxInputs] = {};  // values; kNone for a bias that is left out
  uint8_t n_inputs = 0;
  uint32_t outputs[2] = {};
  uint8_t n_outputs = 0;
  uint32_t flags = 0;
  float low = -__builtin_inff();  // what its results are limited to
  float high = __builtin_inff();
  Body body;  // the rest of its parameters
};

struct Graph {
  Span<Value> values;
  Span<Node> nodes;
  size_t n_arguments = 0;  // that a call must have at least
};

// Whether this runtime computes with a datatype: float32 and the half types, which are widened to
// it.
inline bool is_float(Datatype datatype) {
  return datatype == Datatype::FP32 || datatype == Datatype::FP16 || datatype == Datatype::BF16;
}
// Whether elements are int8 with one scale and zero point.
inline bool is_int8(const Value& value) { return value.datatype == Datatype::QINT8; }
inline bool same_quantization(const Value& a, const Value& b) {
  return a.quantization.scale == b.quantization.scale &&
         a.quantization.zero_point == b.quantization.zero_point;
}
// Of tensors that have one of these, or qint8.
inline DType dtype_of(Datatype datatype) {
  if (datatype == Datatype::QINT8) return DType::Int8;
  if (datatype == Datatype::FP16) return DType::Float16;
  return datatype == Datatype::BF16 ? DType::BFloat16 : DType::Float32;
}

inline bool is_half(DType dtype) { return dtype == DType::Float16 || dtype == DType::BFloat16; }

// "FullyConnected", "Add", ...; "?" for an unknown kind.
const char* name_of(NodeKind kind);
// "fp32", "qint8", ...
const char* name_of(Datatype datatype);

}  // namespace rushlight::xnnpack
