#include <cstdint>

#include "rushlight/kernel/kernel.h"

namespace rushlight {
namespace {

struct Argument {
  char letter;
  bool optional;
};

// The next letter of a signature; moves `at` behind it.
Argument next(const char** at) {
  const bool optional = **at == '?';
  if (optional) ++*at;
  return {*(*at)++, optional};
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.data);
  const auto second = reinterpret_cast<uintptr_t>(b.data);
  const size_t a_bytes = static_cast<size_t>(a.capacity) * element_size(a.dtype);
  const size_t b_bytes = static_cast<size_t>(b.capacity) * element_size(b.dtype);
  if (first == 0 || second == 0 || a_bytes == 0 || b_bytes == 0) return false;
  return first < second ? second - first < a_bytes : first - second < b_bytes;
}

// What kernels may read as an index, a mask or a count.
bool steers(const Tensor& tensor) {
  return is_integral(tensor.dtype) || tensor.dtype == DType::Bool;
}

bool harms(const Tensor& written, const Tensor* read) {
  if (read == nullptr) return false;
  if (read == &written) return written.dynamism != Dynamism::Static || steers(*read);
  return steers(*read) && overlap(written, *read);
}

// Whether writing `written` harms what argument `value`, of kind `letter`, is read for.
bool harms(const Tensor& written, char letter, const EValue& value) {
  if (letter == 't') return harms(written, value.tensor_or_null());
  if (letter != 'T' && letter != 'O') return false;
  for (size_t k = 0; k < value.size(); ++k) {
    if (harms(written, value.tensor_at(k))) return true;
  }
  return false;
}

// The first argument that writing `written` harms; n_args if there is none.
size_t find_harmed(const Kernel& kernel, EValue* const* args, size_t n_args,
                   const Tensor& written) {
  // In place (`index_put_`): the same tensor is read and written, so only indices matter.
  const bool in_place = kernel.signature[0] == 'w';
  const char* at = kernel.signature;
  for (size_t i = 0; *at != '\0'; ++i) {
    const char letter = next(&at).letter;
    if (in_place && letter != 'O') continue;
    if (harms(written, letter, *args[i])) return i;
  }
  return n_args;
}

}  // namespace

size_t first_result(const Kernel& kernel) {
  size_t written = SIZE_MAX;
  size_t count = 0;
  for (const char* at = kernel.signature; *at != '\0'; ++count) {
    const char letter = next(&at).letter;
    if (letter == '=') return count;
    if (written == SIZE_MAX && (letter == 'w' || letter == 'W' || letter == 'r')) written = count;
  }
  return written != SIZE_MAX ? written : count;
}

Status check_written(const Kernel& kernel, EValue* const* args, size_t n_args, Message& message) {
  const char* at = kernel.signature;
  bool returns = false;
  for (const char* c = at; *c != '\0'; ++c) returns = returns || *c == '=';
  if (!returns) return {};
  for (size_t i = 0; *at != '\0'; ++i) {
    const char letter = next(&at).letter;
    const size_t count = letter == 'w' ? 1 : letter == 'W' ? args[i]->size() : 0;
    for (size_t k = 0; k < count; ++k) {
      const Tensor* written = letter == 'w' ? args[i]->tensor_or_null() : args[i]->tensor_at(k);
      if (written == nullptr) continue;
      const size_t harmed = find_harmed(kernel, args, n_args, *written);
      if (harmed == n_args) continue;
      return message.fail(Code::InvalidProgram,
                          "argument %zu, which the operator writes, is also read as argument %zu",
                          i, harmed);
    }
  }
  return {};
}

}  // namespace rushlight
