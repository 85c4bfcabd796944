// The data file (.ptd): tensors and other bytes by name, for programs that keep weights outside.
//
// Made from schema/flat_tensor.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/common_fb.h"
#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {
namespace flat_tensor {

// How the bytes of a tensor are read.
class TensorLayout : public Table {
 public:
  using Table::Table;
  ScalarType scalar_type() const { return scalar<ScalarType>(0, ScalarType::BYTE); }
  Vector<int32_t> sizes() const { return Vector<int32_t>(target(1)); }
  bool has_sizes() const { return field(1) != nullptr; }
  // The dimensions from the outermost in memory to the innermost; as long as sizes.
  Vector<uint8_t> dim_order() const { return Vector<uint8_t>(target(2)); }
  bool has_dim_order() const { return field(2) != nullptr; }
};

// A segment by name; several names may share one.
class NamedData : public Table {
 public:
  using Table::Table;
  StringView key() const { return string(0); }
  bool has_key() const { return field(0) != nullptr; }
  uint32_t segment_index() const { return scalar<uint32_t>(1, 0); }
  // Absent for bytes that only a backend understands.
  TensorLayout tensor_layout() const { return TensorLayout(target(2)); }
  bool has_tensor_layout() const { return field(2) != nullptr; }
};

// The whole file.
class FlatTensor : public Table {
 public:
  using Table::Table;
  uint32_t version() const { return scalar<uint32_t>(0, 0); }
  Tables<DataSegment> segments() const { return Tables<DataSegment>(target(1)); }
  bool has_segments() const { return field(1) != nullptr; }
  Tables<NamedData> named_data() const { return Tables<NamedData>(target(2)); }
  bool has_named_data() const { return field(2) != nullptr; }
};

// What verify_flatbuffer walks.
namespace flat_tensor_layout {

inline constexpr FieldLayout kFields[] = {
    // FlatTensor
    {FieldKind::Scalar, 2},  // version
    {FieldKind::Tables, 1},  // segments
    {FieldKind::Tables, 2},  // named_data
    // DataSegment
    {FieldKind::Scalar, 3},  // offset
    {FieldKind::Scalar, 3},  // size
    // NamedData
    {FieldKind::String, 0},  // key
    {FieldKind::Scalar, 2},  // segment_index
    {FieldKind::Table, 3},   // tensor_layout
    // TensorLayout
    {FieldKind::Scalar, 0},  // scalar_type
    {FieldKind::Vector, 2},  // sizes
    {FieldKind::Vector, 0},  // dim_order
};
inline constexpr TableLayout kTables[] = {
    {0, 3},  // 0 FlatTensor
    {3, 2},  // 1 DataSegment
    {5, 3},  // 2 NamedData
    {8, 3},  // 3 TensorLayout
};
inline constexpr Layout kFlatTensor = {kFields, kTables, nullptr, nullptr};

}  // namespace flat_tensor_layout

inline constexpr char kFlatTensorIdentifier[] = "FT01";

// True if the buffer can be read through these views; says nothing of its meaning.
inline bool verify_FlatTensor(const uint8_t* data, size_t size) {
  return verify_flatbuffer(data, size, flat_tensor_layout::kFlatTensor);
}
// The root of a buffer that was verified.
inline FlatTensor root_FlatTensor(const uint8_t* data) { return FlatTensor(follow(data)); }

}  // namespace flat_tensor
}  // namespace fb
}  // namespace rushlight
