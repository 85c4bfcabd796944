// One value of a method, to which the arguments of instructions point.
//
// A tensor is held by pointer, so that after a move two values refer to the same tensor. All kinds
// of scalars are stored in the value itself, and reading one as another is safe. Kinds that hold
// pointers are distinguished by `tag`. A method's loader checks each tag against what the kernel
// declares (kernel/kernel.h), so kernels read them without checks.
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
// What stands before the name in a sentence: "a ", "an ", or nothing before None.
const char* tag_article(Tag tag);

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
  // nullptr if the value is None.
  Tensor* tensor_or_null() const { return tag == Tag::Tensor ? t : nullptr; }

  // A scalar of any tag, converted as in C. From Double to int the conversion saturates, and NaN
  // gives 0.
  int64_t to_int() const;
  double to_double() const { return tag == Tag::Double ? d : static_cast<double>(i); }
  bool to_bool() const { return tag == Tag::Double ? d != 0.0 : i != 0; }

  size_t size() const { return list.size; }
  // For IntList: each element is a separate scalar value, so that an element can be computed at run
  // time.
  int64_t int_at(size_t k) const { return boxed(k)->to_int(); }
  // For TensorList, and for OptionalTensorList, where None gives nullptr.
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
