#include "values.h"

#include <new>

namespace executorch::runtime::internal {
namespace {

using OurTag = ::rushlight::Tag;

constexpr size_t round_up(size_t bytes) {
  constexpr size_t kAlignment = alignof(std::max_align_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
size_t list_bytes(size_t count) {
  return round_up(sizeof(BoxedEvalueList<T>)) + round_up(count * sizeof(T));
}

size_t bytes_of(const ::rushlight::EValue& value) {
  switch (value.tag) {
    case OurTag::String:
    case OurTag::DoubleList:
    case OurTag::BoolList:
      return round_up(sizeof(aten::ArrayRef<char>));
    case OurTag::IntList:
      return list_bytes<int64_t>(value.size());
    case OurTag::TensorList:
      return list_bytes<aten::Tensor>(value.size());
    case OurTag::OptionalTensorList:
      return list_bytes<std::optional<aten::Tensor>>(value.size());
    default:
      return 0;
  }
}

// Hands out the memory of the views piece by piece.
class Pieces {
 public:
  explicit Pieces(void* memory) : at_(static_cast<uint8_t*>(memory)) {}
  void* take(size_t bytes) {
    void* piece = at_;
    at_ += round_up(bytes);
    return piece;
  }

 private:
  uint8_t* at_;
};

template <typename T>
EValue view_array(const ::rushlight::EValue& value, Pieces& pieces) {
  void* memory = pieces.take(sizeof(aten::ArrayRef<T>));
  return EValue(new (memory)
                    aten::ArrayRef<T>(static_cast<const T*>(value.list.items), value.list.size));
}

template <typename T, typename Item>
EValue view_list(const ::rushlight::EValue& value, Pieces& pieces, Item item) {
  void* box = pieces.take(sizeof(BoxedEvalueList<T>));
  T* items = static_cast<T*>(pieces.take(value.size() * sizeof(T)));
  for (size_t k = 0; k < value.size(); ++k) new (&items[k]) T(item(k));
  return EValue(new (box) BoxedEvalueList<T>(items, value.size()));
}

EValue view_in(const ::rushlight::EValue& value, Pieces& pieces) {
  switch (value.tag) {
    case OurTag::String:
      return view_array<char>(value, pieces);
    case OurTag::DoubleList:
      return view_array<double>(value, pieces);
    case OurTag::BoolList:
      static_assert(sizeof(bool) == sizeof(uint8_t), "bools are bytes");
      return view_array<bool>(value, pieces);
    case OurTag::IntList:
      return view_list<int64_t>(value, pieces, [&](size_t k) { return value.int_at(k); });
    case OurTag::TensorList:
      return view_list<aten::Tensor>(value, pieces, [&](size_t k) {
        return aten::Tensor(aten::TensorImpl::of(value.tensor_at(k)));
      });
    case OurTag::OptionalTensorList:
      return view_list<std::optional<aten::Tensor>>(value, pieces, [&](size_t k) {
        ::rushlight::Tensor* tensor = value.tensor_at(k);
        return tensor == nullptr
                   ? std::optional<aten::Tensor>()
                   : std::optional<aten::Tensor>(aten::Tensor(aten::TensorImpl::of(tensor)));
      });
    default:
      return view_of(value);
  }
}

}  // namespace

EValue view_of(const ::rushlight::EValue& value) {
  switch (value.tag) {
    case OurTag::Tensor:
      return EValue(aten::Tensor(aten::TensorImpl::of(value.t)));
    case OurTag::Int:
      return EValue(value.i);
    case OurTag::Double:
      return EValue(value.d);
    case OurTag::Bool:
      return EValue(value.i != 0);
    default:
      return EValue();
  }
}

size_t bytes_of_views(::rushlight::EValue* const* args, size_t count) {
  size_t bytes = round_up(count * sizeof(EValue*)) + round_up(count * sizeof(EValue));
  for (size_t i = 0; i < count; ++i) bytes += bytes_of(*args[i]);
  return bytes;
}

Span<EValue*> make_views(::rushlight::EValue* const* args, size_t count, void* memory) {
  Pieces pieces(memory);
  auto** pointers = static_cast<EValue**>(pieces.take(count * sizeof(EValue*)));
  auto* values = static_cast<EValue*>(pieces.take(count * sizeof(EValue)));
  for (size_t i = 0; i < count; ++i) {
    pointers[i] = new (&values[i]) EValue(view_in(*args[i], pieces));
  }
  return {pointers, count};
}

}  // namespace executorch::runtime::internal
