// A graph of ExecuTorch's XNNPACK delegate as plain structs, read from a payload and checked:
// values are numbered in the order of the payload, every node comes after the nodes whose results
// it uses, and constants are complete. Images are [N, H, W, C].
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

// Bits of a node's flags.
constexpr uint32_t kTransposeWeights = 1;
constexpr uint32_t kAlignCorners = 8;
constexpr uint32_t kKeepDims = 64;

struct Shape {
  size_t rank = 0;
  int64_t sizes[kMaxRank] = {};

  int64_t last() const { return rank > 0 ? sizes[rank - 1] : 1; }
};

// The numbers that integers stand for: scale * (integer - zero_point).
struct Quantization {
  float scale = 0;  // for all elements, if `scales` is empty
  int32_t zero_point = 0;
  // float32, one for each index of a dimension; with groups, bfloat16. Not aligned.
  Span<const uint8_t> scales;
  size_t channel_dim = 0;
  int64_t group_size = 0;  // neighbouring elements of a row that share a scale; 0 without groups
  int64_t row_dims = 1;    // if quantized at run time: how many of the last dimensions make a row
};

enum class Role : uint8_t { Internal, Constant, Input, Output };

struct Value {
  uint32_t id = 0;  // in the payload
  Role role = Role::Internal;
  Datatype datatype = Datatype::FP32;
  Shape shape;                // as in the payload; for inputs an upper bound
  StringView key;             // of a constant in the named data
  Span<const uint8_t> data;   // of a constant; not aligned
  Quantization quantization;  // of integers
  uint32_t argument = 0;      // of an input or output: which argument of the delegate
  uint32_t producer = kNone;  // the node that writes it
  uint32_t uses = 0;          // by inputs of nodes
};

// The payload's table of a node of any kind.
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
  float low = -__builtin_inff();  // limits of its results
  float high = __builtin_inff();
  Body body;  // the rest of its parameters
};

struct Graph {
  Span<Value> values;
  Span<Node> nodes;
  size_t n_arguments = 0;  // that a call must have
};

// Whether this runtime computes with a datatype: float32, and the half types, which it widens.
inline bool is_float(Datatype datatype) {
  return datatype == Datatype::FP32 || datatype == Datatype::FP16 || datatype == Datatype::BF16;
}
// Whether elements are int8 with one scale and zero point.
inline bool is_int8(const Value& value) { return value.datatype == Datatype::QINT8; }
inline bool same_quantization(const Value& a, const Value& b) {
  return a.quantization.scale == b.quantization.scale &&
         a.quantization.zero_point == b.quantization.zero_point;
}
// Whether a tensor has one of these types, or qint8.
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
