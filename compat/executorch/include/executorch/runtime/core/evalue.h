// One value of any kind. Tensors are references; lists belong to whoever made the value.
//
// toX() ends the program if the value is of another kind, tryToX() returns InvalidType.
#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tag.h>
#include <executorch/runtime/platform/assert.h>

#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace executorch::runtime {

struct EValue;

namespace internal {

// Tensors are handed out by reference, other values by copy.
template <typename T>
using evalue_to_const_ref =
    std::conditional_t<std::is_same_v<T, aten::Tensor>, const aten::Tensor&, T>;
template <typename T>
using evalue_to_ref = std::conditional_t<std::is_same_v<T, aten::Tensor>, aten::Tensor&, T>;

}  // namespace internal

// A list whose elements are values of their own, which may change between runs; `unwrapped` is
// memory for as many elements. Without wrapped values, the unwrapped ones are the list.
template <typename T>
class BoxedEvalueList {
 public:
  BoxedEvalueList() = default;
  BoxedEvalueList(EValue** wrapped, T* unwrapped, int size)
      : wrapped_(wrapped), unwrapped_(unwrapped), size_(static_cast<size_t>(size)) {
    ET_CHECK_MSG(wrapped != nullptr && unwrapped != nullptr, "a list has no memory");
    ET_CHECK_MSG(size >= 0, "the size of a list is negative");
  }
  BoxedEvalueList(T* unwrapped, size_t size) : unwrapped_(unwrapped), size_(size) {}

  aten::ArrayRef<T> get() const;
  Result<aten::ArrayRef<T>> tryGet() const;
  void destroy_elements() {}

 private:
  EValue** wrapped_ = nullptr;
  T* unwrapped_ = nullptr;
  size_t size_ = 0;
};

struct EValue {
  union Payload {
    union TriviallyCopyablePayload {
      TriviallyCopyablePayload() : as_int(0) {}
      int64_t as_int;
      double as_double;
      bool as_bool;
      aten::ArrayRef<char>* as_string_ptr;
      aten::ArrayRef<double>* as_double_list_ptr;
      aten::ArrayRef<bool>* as_bool_list_ptr;
      BoxedEvalueList<int64_t>* as_int_list_ptr;
      BoxedEvalueList<aten::Tensor>* as_tensor_list_ptr;
      BoxedEvalueList<std::optional<aten::Tensor>>* as_list_optional_tensor_ptr;
    } copyable_union;
    aten::Tensor as_tensor;

    Payload() : copyable_union() {}
  };

  Payload payload;
  Tag tag = Tag::None;

  EValue() = default;
  EValue(int64_t value) : tag(Tag::Int) { payload.copyable_union.as_int = value; }
  EValue(double value) : tag(Tag::Double) { payload.copyable_union.as_double = value; }
  EValue(bool value) : tag(Tag::Bool) { payload.copyable_union.as_bool = value; }
  EValue(aten::Scalar value) {
    if (value.isBoolean()) {
      *this = EValue(value.to<bool>());
    } else if (value.isFloatingPoint()) {
      *this = EValue(value.to<double>());
    } else {
      *this = EValue(value.to<int64_t>());
    }
  }
  EValue(aten::Tensor value) : tag(Tag::Tensor) { payload.as_tensor = value; }
  EValue(aten::ArrayRef<char>* list) : tag(Tag::String) {
    payload.copyable_union.as_string_ptr = checked(list);
  }
  EValue(aten::ArrayRef<double>* list) : tag(Tag::ListDouble) {
    payload.copyable_union.as_double_list_ptr = checked(list);
  }
  EValue(aten::ArrayRef<bool>* list) : tag(Tag::ListBool) {
    payload.copyable_union.as_bool_list_ptr = checked(list);
  }
  EValue(BoxedEvalueList<int64_t>* list) : tag(Tag::ListInt) {
    payload.copyable_union.as_int_list_ptr = checked(list);
  }
  EValue(BoxedEvalueList<aten::Tensor>* list) : tag(Tag::ListTensor) {
    payload.copyable_union.as_tensor_list_ptr = checked(list);
  }
  EValue(BoxedEvalueList<std::optional<aten::Tensor>>* list) : tag(Tag::ListOptionalTensor) {
    payload.copyable_union.as_list_optional_tensor_ptr = checked(list);
  }
  // From what points to something that a value can be made of, such as a TensorPtr.
  template <typename T, typename = std::enable_if_t<
                            !std::is_pointer_v<std::remove_reference_t<T>> &&
                            std::is_convertible_v<decltype(*std::declval<T&>()), EValue>>>
  EValue(T&& pointer) {
    ET_CHECK_MSG(pointer != nullptr, "a pointer to a value is null");
    *this = EValue(*pointer);
  }
  template <typename T>
  explicit EValue(T*) = delete;

  bool isNone() const { return tag == Tag::None; }
  bool isScalar() const { return isInt() || isDouble() || isBool(); }

#define EVALUE_KIND_(Type, name, tag_, read)                                  \
  bool is##name() const { return tag == Tag::tag_; }                          \
  Type to##name() const {                                                     \
    ET_CHECK_MSG(is##name(), "the value is no %s", tag_to_string(Tag::tag_)); \
    return read;                                                              \
  }                                                                           \
  Result<Type> tryTo##name() const {                                          \
    if (!is##name()) return Error::InvalidType;                               \
    return read;                                                              \
  }
  EVALUE_KIND_(int64_t, Int, Int, payload.copyable_union.as_int)
  EVALUE_KIND_(double, Double, Double, payload.copyable_union.as_double)
  EVALUE_KIND_(bool, Bool, Bool, payload.copyable_union.as_bool)
  EVALUE_KIND_(std::string_view, String, String,
               std::string_view(payload.copyable_union.as_string_ptr->data(),
                                payload.copyable_union.as_string_ptr->size()))
  EVALUE_KIND_(aten::ArrayRef<bool>, BoolList, ListBool, *payload.copyable_union.as_bool_list_ptr)
  EVALUE_KIND_(aten::ArrayRef<double>, DoubleList, ListDouble,
               *payload.copyable_union.as_double_list_ptr)
#undef EVALUE_KIND_
#define EVALUE_LIST_(Type, name, tag_, member)                                \
  bool is##name() const { return tag == Tag::tag_; }                          \
  aten::ArrayRef<Type> to##name() const {                                     \
    ET_CHECK_MSG(is##name(), "the value is no %s", tag_to_string(Tag::tag_)); \
    return payload.copyable_union.member->get();                              \
  }                                                                           \
  Result<aten::ArrayRef<Type>> tryTo##name() const {                          \
    if (!is##name()) return Error::InvalidType;                               \
    return payload.copyable_union.member->tryGet();                           \
  }
  EVALUE_LIST_(int64_t, IntList, ListInt, as_int_list_ptr)
  EVALUE_LIST_(aten::Tensor, TensorList, ListTensor, as_tensor_list_ptr)
  EVALUE_LIST_(std::optional<aten::Tensor>, ListOptionalTensor, ListOptionalTensor,
               as_list_optional_tensor_ptr)
#undef EVALUE_LIST_
  // Kinds that are written as integers.
#define EVALUE_ENUM_(Type, name)                                           \
  aten::Type to##name() const { return static_cast<aten::Type>(toInt()); } \
  Result<aten::Type> tryTo##name() const {                                 \
    if (!isInt()) return Error::InvalidType;                               \
    return static_cast<aten::Type>(payload.copyable_union.as_int);         \
  }
  EVALUE_ENUM_(ScalarType, ScalarType)
  EVALUE_ENUM_(MemoryFormat, MemoryFormat)
  EVALUE_ENUM_(Layout, Layout)
#undef EVALUE_ENUM_
  aten::Device toDevice() const { return {static_cast<aten::DeviceType>(toInt()), -1}; }
  Result<aten::Device> tryToDevice() const {
    if (!isInt()) return Error::InvalidType;
    return toDevice();
  }

  aten::Scalar toScalar() const {
    ET_CHECK_MSG(isScalar(), "the value is no number");
    if (isDouble()) return toDouble();
    if (isBool()) return toBool();
    return toInt();
  }
  Result<aten::Scalar> tryToScalar() const {
    if (!isScalar()) return Error::InvalidType;
    return toScalar();
  }

  bool isTensor() const { return tag == Tag::Tensor; }
  aten::Tensor& toTensor() & {
    ET_CHECK_MSG(isTensor(), "the value is no Tensor");
    return payload.as_tensor;
  }
  const aten::Tensor& toTensor() const& {
    ET_CHECK_MSG(isTensor(), "the value is no Tensor");
    return payload.as_tensor;
  }
  aten::Tensor toTensor() && {
    ET_CHECK_MSG(isTensor(), "the value is no Tensor");
    return payload.as_tensor;
  }
  Result<aten::Tensor> tryToTensor() const {
    if (!isTensor()) return Error::InvalidType;
    return payload.as_tensor;
  }

  template <typename T>
  T to() && {
    return to_any<T>();
  }
  template <typename T>
  internal::evalue_to_const_ref<T> to() const& {
    if constexpr (std::is_same_v<T, aten::Tensor>) {
      return toTensor();
    } else {
      return to_any<T>();
    }
  }
  template <typename T>
  internal::evalue_to_ref<T> to() & {
    if constexpr (std::is_same_v<T, aten::Tensor>) {
      return toTensor();
    } else {
      return to_any<T>();
    }
  }
  template <typename T>
  Result<T> tryTo() const {
    return try_any(static_cast<T*>(nullptr));
  }
  template <typename T>
  std::optional<T> toOptional() const {
    if (isNone()) return std::nullopt;
    return std::optional<T>(to<T>());
  }
  template <typename T>
  Result<std::optional<T>> tryToOptional() const {
    if (isNone()) return std::optional<T>();
    Result<T> value = tryTo<T>();
    if (!value.ok()) return value.error();
    return std::optional<T>(*value);
  }

 private:
  template <typename T>
  static T* checked(T* list) {
    ET_CHECK_MSG(list != nullptr, "a pointer to a list is null");
    return list;
  }
  template <typename T>
  T to_any() const {
    Result<T> value = tryTo<T>();
    ET_CHECK_MSG(value.ok(), "the value is of another kind: %s", tag_to_string(tag));
    return *value;
  }
#define EVALUE_TRY_(Type, name) \
  Result<Type> try_any(Type*) const { return tryTo##name(); }
  EVALUE_TRY_(int64_t, Int)
  EVALUE_TRY_(double, Double)
  EVALUE_TRY_(bool, Bool)
  EVALUE_TRY_(aten::Scalar, Scalar)
  EVALUE_TRY_(std::string_view, String)
  EVALUE_TRY_(aten::ScalarType, ScalarType)
  EVALUE_TRY_(aten::MemoryFormat, MemoryFormat)
  EVALUE_TRY_(aten::Layout, Layout)
  EVALUE_TRY_(aten::Device, Device)
  EVALUE_TRY_(aten::Tensor, Tensor)
  EVALUE_TRY_(aten::ArrayRef<bool>, BoolList)
  EVALUE_TRY_(aten::ArrayRef<double>, DoubleList)
  EVALUE_TRY_(aten::ArrayRef<int64_t>, IntList)
  EVALUE_TRY_(aten::ArrayRef<aten::Tensor>, TensorList)
  EVALUE_TRY_(aten::ArrayRef<std::optional<aten::Tensor>>, ListOptionalTensor)
#undef EVALUE_TRY_
  template <typename T>
  Result<std::optional<T>> try_any(std::optional<T>*) const {
    return tryToOptional<T>();
  }
};

template <typename T>
Result<aten::ArrayRef<T>> BoxedEvalueList<T>::tryGet() const {
  for (size_t i = 0; wrapped_ != nullptr && i < size_; ++i) {
    if (wrapped_[i] == nullptr) {
      if constexpr (std::is_same_v<T, std::optional<aten::Tensor>>) {
        new (&unwrapped_[i]) T();
        continue;
      }
      return Error::InvalidState;
    }
    Result<T> value = wrapped_[i]->template tryTo<T>();
    if (!value.ok()) return value.error();
    new (&unwrapped_[i]) T(*value);
  }
  return aten::ArrayRef<T>(unwrapped_, size_);
}

template <typename T>
aten::ArrayRef<T> BoxedEvalueList<T>::get() const {
  Result<aten::ArrayRef<T>> list = tryGet();
  ET_CHECK_MSG(list.ok(), "an element of a list is of another kind");
  return *list;
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::BoxedEvalueList;
using ::executorch::runtime::EValue;
}  // namespace torch::executor
