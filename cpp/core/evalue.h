// One value of a method: what an instruction's arguments point to.
//
// A tensor is held by pointer, so that a move makes two values denote the same tensor. Scalars of
// every kind lie in the value itself and may be read as one another without harm to memory; the
// kinds that hold pointers are told apart by `tag`, and a method's loader checks each against what
// the kernel declares (kernel/kernel.h), so kernels read them without a test.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/core/tensor.h"

namespace rushlight {

enum class Tag : uint8_t {
  None = 0,
  Tensor = 1,
  String = 2,
  Double = 3,
  Int = 4,
  Bool = 5,
  BoolList = 6,
  DoubleList = 7,
  IntList = 8,
  TensorList = 9,
  OptionalTensorList = 11,
};

const char* tag_name(Tag tag);

struct EValue {
  struct List {
    const void* items;
    uint32_t size;
  };

  Tag tag = Tag::None;
  union {
    int64_t i;  // Int, and Bool as 0 or 1
    double d;
    Tensor* t;
    List list;  // String: char; BoolList: uint8_t; DoubleList: double; the other lists: EValue*
  };

  EValue() : list{nullptr, 0} {}

  bool is_none() const { return tag == Tag::None; }
  bool is_tensor() const { return tag == Tag::Tensor; }
  bool is_scalar() const { return tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool; }

  Tensor& tensor() const { return *t; }
  // nullptr for None.
  Tensor* tensor_or_null() const { return tag == Tag::Tensor ? t : nullptr; }

  // A scalar of any tag, converted as C does it (saturating, NaN to 0, from Double to int).
  int64_t to_int() const;
  double to_double() const { return tag == Tag::Double ? d : static_cast<double>(i); }
  bool to_bool() const { return tag == Tag::Double ? d != 0.0 : i != 0; }

  size_t size() const { return list.size; }
  // IntList: each element is a scalar value of its own, so that a computed size can stand there.
  int64_t int_at(size_t k) const { return boxed(k)->to_int(); }
  // TensorList; for OptionalTensorList nullptr is None.
  Tensor* tensor_at(size_t k) const {
    const EValue* v = boxed(k);
    return v == nullptr ? nullptr : v->tensor_or_null();
  }
  double double_at(size_t k) const { return static_cast<const double*>(list.items)[k]; }
  bool bool_at(size_t k) const { return static_cast<const uint8_t*>(list.items)[k] != 0; }
  StringView string() const { return {static_cast<const char*>(list.items), list.size}; }

  void set_int(int64_t value) {
    tag = Tag::Int;
    i = value;
  }
  void set_double(double value) {
    tag = Tag::Double;
    d = value;
  }
  void set_bool(bool value) {
    tag = Tag::Bool;
    i = value;
  }

 private:
  const EValue* boxed(size_t k) const { return static_cast<const EValue* const*>(list.items)[k]; }
};

}  // namespace rushlight
