// A program with test cases for its methods (.bpte), in ExecuTorch's format.
//
// Made from schema/bundled_program.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/common_fb.h"
#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {
namespace bundled {

enum class ValueUnion : uint8_t {
  NONE = 0,
  Tensor = 1,
  Int = 2,
  Bool = 3,
  Double = 4,
};

// A whole number.
class Int : public Table {
 public:
  using Table::Table;
  int64_t int_val() const { return scalar<int64_t>(0, 0); }
};

// A truth value.
class Bool : public Table {
 public:
  using Table::Table;
  bool bool_val() const { return scalar<bool>(0, false); }
};

// A number of 64 bits.
class Double : public Table {
 public:
  using Table::Table;
  double double_val() const { return scalar<double>(0, 0.0); }
};

// A tensor with its elements, which lie in its dim order without gaps.
class Tensor : public Table {
 public:
  using Table::Table;
  ScalarType scalar_type() const { return scalar<ScalarType>(0, ScalarType::BYTE); }
  Vector<int32_t> sizes() const { return Vector<int32_t>(target(1)); }
  bool has_sizes() const { return field(1) != nullptr; }
  Vector<uint8_t> data() const { return Vector<uint8_t>(target(2)); }
  bool has_data() const { return field(2) != nullptr; }
  // The dimensions from the outermost in memory to the innermost.
  Vector<uint8_t> dim_order() const { return Vector<uint8_t>(target(3)); }
  bool has_dim_order() const { return field(3) != nullptr; }
};

// An input or an output.
class Value : public Table {
 public:
  using Table::Table;
  // Absent for what a program always has in this place: None, or a text.
  ValueUnion val_type() const { return scalar<ValueUnion>(0, ValueUnion::NONE); }
  // Absent unless the type is this one.
  Tensor val_as_Tensor() const {
    return Tensor(member(0, static_cast<uint8_t>(ValueUnion::Tensor)));
  }
  Int val_as_Int() const { return Int(member(0, static_cast<uint8_t>(ValueUnion::Int))); }
  Bool val_as_Bool() const { return Bool(member(0, static_cast<uint8_t>(ValueUnion::Bool))); }
  Double val_as_Double() const {
    return Double(member(0, static_cast<uint8_t>(ValueUnion::Double)));
  }
  bool has_val() const { return field(1) != nullptr; }
};

// What Rushlight keeps with a test case; other runtimes do not read it.
class CaseNotes : public Table {
 public:
  using Table::Table;
  StringView name() const { return string(0); }
  bool has_name() const { return field(0) != nullptr; }
  // What the expected outputs come from: "eager", "program" or "given".
  StringView origin() const { return string(1); }
  bool has_origin() const { return field(1) != nullptr; }
  // How far each output may depart from what is expected, by |got - expected| <= atol + rtol *
  // |expected|; for whole numbers by atol alone. Empty: rtol is 1e-5 and atol is 1e-8, and whole
  // numbers must be equal.
  Vector<double> rtol() const { return Vector<double>(target(2)); }
  bool has_rtol() const { return field(2) != nullptr; }
  Vector<double> atol() const { return Vector<double>(target(3)); }
  bool has_atol() const { return field(3) != nullptr; }
};

// One call of a method.
class BundledMethodTestCase : public Table {
 public:
  using Table::Table;
  Tables<Value> inputs() const { return Tables<Value>(target(0)); }
  bool has_inputs() const { return field(0) != nullptr; }
  // Empty if they are not known.
  Tables<Value> expected_outputs() const { return Tables<Value>(target(1)); }
  bool has_expected_outputs() const { return field(1) != nullptr; }
  // Far from ExecuTorch's own fields, which may become more.
  CaseNotes notes() const { return CaseNotes(target(16)); }
  bool has_notes() const { return field(16) != nullptr; }
};

// The test cases of a method.
class BundledMethodTestSuite : public Table {
 public:
  using Table::Table;
  StringView method_name() const { return string(0); }
  bool has_method_name() const { return field(0) != nullptr; }
  Tables<BundledMethodTestCase> test_cases() const {
    return Tables<BundledMethodTestCase>(target(1));
  }
  bool has_test_cases() const { return field(1) != nullptr; }
};

// The whole file.
class BundledProgram : public Table {
 public:
  using Table::Table;
  uint32_t version() const { return scalar<uint32_t>(0, 0); }
  Tables<BundledMethodTestSuite> method_test_suites() const {
    return Tables<BundledMethodTestSuite>(target(1));
  }
  bool has_method_test_suites() const { return field(1) != nullptr; }
  // A program file.
  Vector<uint8_t> program() const { return Vector<uint8_t>(target(2)); }
  bool has_program() const { return field(2) != nullptr; }
};

// What verify_flatbuffer walks.
namespace bundled_program_layout {

inline constexpr FieldLayout kFields[] = {
    // BundledProgram
    {FieldKind::Scalar, 2},  // version
    {FieldKind::Tables, 1},  // method_test_suites
    {FieldKind::Vector, 0},  // program
    // BundledMethodTestSuite
    {FieldKind::String, 0},  // method_name
    {FieldKind::Tables, 2},  // test_cases
    // BundledMethodTestCase
    {FieldKind::Tables, 3},  // inputs
    {FieldKind::Tables, 3},  // expected_outputs
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Scalar, 0},  // no field
    {FieldKind::Table, 4},   // notes
    // Value
    {FieldKind::Union, 0},       // val_type
    {FieldKind::UnionValue, 0},  // val
    // CaseNotes
    {FieldKind::String, 0},  // name
    {FieldKind::String, 0},  // origin
    {FieldKind::Vector, 3},  // rtol
    {FieldKind::Vector, 3},  // atol
    // Tensor
    {FieldKind::Scalar, 0},  // scalar_type
    {FieldKind::Vector, 2},  // sizes
    {FieldKind::Vector, 0},  // data
    {FieldKind::Vector, 0},  // dim_order
    // Int
    {FieldKind::Scalar, 3},  // int_val
    // Bool
    {FieldKind::Scalar, 0},  // bool_val
    // Double
    {FieldKind::Scalar, 3},  // double_val
};
inline constexpr TableLayout kTables[] = {
    {0, 3},   // 0 BundledProgram
    {3, 2},   // 1 BundledMethodTestSuite
    {5, 17},  // 2 BundledMethodTestCase
    {22, 2},  // 3 Value
    {24, 4},  // 4 CaseNotes
    {28, 4},  // 5 Tensor
    {32, 1},  // 6 Int
    {33, 1},  // 7 Bool
    {34, 1},  // 8 Double
};
inline constexpr UnionLayout kUnions[] = {
    {0, 4},  // ValueUnion
};
inline constexpr uint8_t kMembers[] = {
    5,  // Tensor
    6,  // Int
    7,  // Bool
    8,  // Double
};
inline constexpr Layout kBundledProgram = {kFields, kTables, kUnions, kMembers};

}  // namespace bundled_program_layout

inline constexpr char kBundledProgramIdentifier[] = "BP08";

// True if the buffer can be read through these views; says nothing of its meaning.
inline bool verify_BundledProgram(const uint8_t* data, size_t size) {
  return verify_flatbuffer(data, size, bundled_program_layout::kBundledProgram);
}
// The root of a buffer that was verified.
inline BundledProgram root_BundledProgram(const uint8_t* data) {
  return BundledProgram(follow(data));
}

}  // namespace bundled
}  // namespace fb
}  // namespace rushlight
