#include "rushlight/delegate/backend.h"

#include "rushlight/core/shape_text.h"

namespace rushlight {
namespace {

[[gnu::format(printf, 3, 4)]] void print_to(char* buffer, size_t size, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  format_to(buffer, size, format, args);
  va_end(args);
}

}  // namespace

void DelegatePlace::set(int64_t id) {
  print_to(text_, sizeof(text_), "%lld", static_cast<long long>(id));
}

void DelegatePlace::set(StringView id) {
  print_to(text_, sizeof(text_), "%.*s", id.len(), id.data());
}

Status BackendRun::resize(Tensor& output, Span<const int32_t> sizes) const {
  int64_t numel = 0;
  const bool counted = sizes.size() == output.rank && count_elements(sizes, &numel);
  if (output.grows && counted && (blocks == nullptr || !blocks->fit(output, numel))) {
    return message->fail(Code::MemoryAllocationFailed,
                         "a result of sizes %s has no bound, and there is no memory for it",
                         ShapeText(sizes).text());
  }
  const Status status = output.resize(sizes);
  if (status.ok()) return status;
  return message->fail(status.code(), "a result has sizes %s, but its output has %s and %s",
                       ShapeText(sizes).text(), ShapeText(output.shape()).text(),
                       output.read_only                      ? "is a constant"
                       : sizes.size() != output.rank         ? "that rank"
                       : output.dynamism == Dynamism::Static ? "these alone"
                                                             : "no room for more");
}

Status BackendTable::add(const char* id, Backend* backend) {
  if (find(id) != nullptr) return Code::RegistrationAlreadyRegistered;
  if (size_ == kCapacity) return Code::OutOfResources;
  entries_[size_].id = id;
  entries_[size_].backend = backend;
  ++size_;
  return {};
}

Status BackendTable::remove(StringView id) {
  for (size_t i = 0; i < size_; ++i) {
    if (id != StringView(entries_[i].id)) continue;
    --size_;
    for (size_t k = i; k < size_; ++k) entries_[k] = entries_[k + 1];
    return {};
  }
  return Code::NotFound;
}

Backend* BackendTable::find(StringView id) const {
  for (size_t i = 0; i < size_; ++i) {
    if (id == StringView(entries_[i].id)) return entries_[i].backend;
  }
  return nullptr;
}

}  // namespace rushlight
