#include "rushlight/method/delegate_call.h"

#include <cstring>

namespace rushlight {
namespace {

template <typename T>
bool same_bytes(const T& a, const T& b) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0, "compared in words");
  uint32_t difference = 0;
  for (size_t at = 0; at < sizeof(T); at += sizeof(uint32_t)) {
    uint32_t words[2];
    std::memcpy(words, reinterpret_cast<const char*>(&a) + at, sizeof(uint32_t));
    std::memcpy(words + 1, reinterpret_cast<const char*>(&b) + at, sizeof(uint32_t));
    difference |= words[0] ^ words[1];
  }
  return difference == 0;
}

// True if the strides follow from the sizes and the dim order.
bool same_strides(const Tensor& tensor) {
  int32_t strides[kMaxRank];
  return strides_of(tensor.shape(), tensor.dim_order, strides) &&
         std::memcmp(strides, tensor.strides, tensor.rank * sizeof(int32_t)) == 0;
}

}  // namespace

// This and is_unchanged() run in every call of a delegate. So whole structs are copied and
// compared, with their padding, and short arrays are copied without calling memcpy.
void DelegateGuard::seal() {
  for (size_t i = 0; i < n_args_; ++i) {
    ArgumentSeal& seal = seals_[i];
    std::memcpy(static_cast<void*>(&seal.value), args_[i], sizeof(EValue));
    const Tensor* tensor = args_[i]->tensor_or_null();
    if (tensor == nullptr) continue;
    std::memcpy(static_cast<void*>(&seal.tensor), tensor, sizeof(Tensor));
    for (size_t k = 0; k < 2 * size_t{tensor->rank}; ++k) seal.dims[k] = tensor->sizes[k];
  }
  shadow_.copy();
}

Status DelegateGuard::check(Message& message, bool* resized) {
  Status status;
  for (size_t i = 0; i < n_args_; ++i) {
    if (is_unchanged(i)) continue;
    const ArgumentSeal& seal = seals_[i];
    const char* changed = find_change(i, seal);
    if (changed == nullptr) {
      const Tensor* tensor = args_[i]->tensor_or_null();
      *resized = *resized || (tensor != nullptr && tensor->numel != seal.tensor.numel);
      continue;
    }
    restore(i);
    const bool is_input = i < n_inputs_;
    status = message.fail(
        Code::Internal, "the backend changed %s of %s %zu; it may %s", changed,
        is_input ? "input" : "output", is_input ? i : i - n_inputs_,
        is_input ? "only read it" : "only write its elements, and resize it within its bound");
  }
  if (!shadow_.is_on()) return status;
  const Status memory = check_memory(message);
  return status.ok() ? memory : status;
}

bool DelegateGuard::is_unchanged(size_t i) const {
  const ArgumentSeal& seal = seals_[i];
  if (!same_bytes(*args_[i], seal.value)) return false;
  const Tensor* now = seal.value.tensor_or_null();
  if (now == nullptr) return true;
  if (!same_bytes(*now, seal.tensor)) return false;
  int32_t difference = 0;
  for (size_t k = 0; k < 2 * size_t{now->rank}; ++k) difference |= now->sizes[k] ^ seal.dims[k];
  return difference == 0;
}

// Names a property of argument `i` that changed although it must not; nullptr if none did.
const char* DelegateGuard::find_change(size_t i, const ArgumentSeal& seal) const {
  const EValue& now = *args_[i];
  if (seal.value.is_scalar()) return now.is_scalar() ? nullptr : "the kind";
  if (now.tag != seal.value.tag) return "the kind";
  if (now.tag == Tag::None) return nullptr;
  if (now.tag != Tag::Tensor) {
    const bool same = now.list.items == seal.value.list.items && now.size() == seal.value.size();
    return same ? nullptr : "the items";
  }
  if (now.t != seal.value.t) return "the tensor";
  const Tensor& was = seal.tensor;
  const Tensor& is = *now.t;
  const bool may_move = i >= n_inputs_ && was.grows;
  if (is.dtype != was.dtype) return "the dtype";
  if (is.rank != was.rank) return "the rank";
  if (!may_move && is.data != was.data) return "the memory";
  if (!may_move && is.capacity != was.capacity) return "the room";
  if (is.sizes != was.sizes || is.strides != was.strides || is.dim_order != was.dim_order) {
    return "the layout";
  }
  if (is.dynamism != was.dynamism || is.planned != was.planned || is.read_only != was.read_only ||
      is.grows != was.grows) {
    return "the nature";
  }
  return find_change_of_sizes(is, seal, i < n_inputs_ || was.dynamism == Dynamism::Static);
}

const char* DelegateGuard::find_change_of_sizes(const Tensor& now, const ArgumentSeal& seal,
                                                bool fixed) const {
  const bool same = std::memcmp(now.sizes, seal.dims, now.rank * sizeof(int32_t)) == 0;
  if (same && now.numel == seal.tensor.numel && same_strides(now)) return nullptr;
  if (fixed) return same ? "the strides or the number of elements" : "the sizes";
  int64_t numel = 0;
  if (!count_elements(now.shape(), &numel) || numel != now.numel || numel > now.capacity) {
    return "the sizes";
  }
  return same_strides(now) ? nullptr : "the strides";
}

void DelegateGuard::restore(size_t i) {
  const ArgumentSeal& seal = seals_[i];
  *args_[i] = seal.value;
  Tensor* tensor = seal.value.tensor_or_null();
  if (tensor == nullptr) return;
  if (tensor->grows && seal.tensor.grows) {  // its block may have been replaced
    tensor->shrink_to_nothing();
    return;
  }
  *tensor = seal.tensor;
  std::memcpy(tensor->sizes, seal.dims, tensor->rank * sizeof(int32_t));
  strides_of(tensor->shape(), tensor->dim_order, tensor->strides);
}

Status DelegateGuard::check_memory(Message& message) {
  for (size_t i = n_inputs_; i < n_args_; ++i) {
    const Tensor* output = args_[i]->tensor_or_null();
    if (output != nullptr) shadow_.accept(*output);
  }
  ChangedByte changed;
  return shadow_.restore(&changed) ? fail_memory(changed, message) : Status();
}

// Reports the position of the byte relative to the arguments.
Status DelegateGuard::fail_memory(ChangedByte byte, Message& message) const {
  const uint8_t* address = shadow_.address(byte);
  size_t nearest = n_args_;
  size_t distance = SIZE_MAX;
  for (size_t i = 0; i < n_args_; ++i) {
    const Tensor* tensor = args_[i]->tensor_or_null();
    if (tensor == nullptr || tensor->data == nullptr) continue;
    const size_t at = offset_in(tensor->data, address);
    if (i < n_inputs_ && at < room_of(*tensor)) {
      return message.fail(Code::Internal, "the backend wrote to byte %zu of its input %zu", at, i);
    }
    if (i < n_inputs_ || at == SIZE_MAX || at - room_of(*tensor) >= distance) continue;
    nearest = i - n_inputs_;
    distance = at - room_of(*tensor);
  }
  if (distance < shadow_.arena_bytes(byte.arena)) {
    return message.fail(Code::Internal,
                        "the backend wrote past the end of output %zu: %zu bytes behind it",
                        nearest, distance);
  }
  return message.fail(Code::Internal,
                      "the backend wrote to memory that is none of its outputs: byte %zu of memory "
                      "%zu",
                      byte.offset, byte.arena + 1);
}

}  // namespace rushlight
