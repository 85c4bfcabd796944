#include "rushlight/delegate/backend.h"

#include "rushlight/core/host_tensor.h"
#include "rushlight/core/shape_text.h"

namespace rushlight {
namespace {

[[gnu::format(printf, 3, 4)]] void print_to(char* buffer, size_t size, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  format_to(buffer, size, format, args);
  va_end(args);
}

// The dtypes that readers of traces know.
bool is_recorded(DType dtype) {
  return is_floating(dtype) || is_integral(dtype) || dtype == DType::Bool ||
         dtype == DType::Complex64 || dtype == DType::Complex128;
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

Status BackendRun::tell_value(DelegateId id, DType dtype, Span<const int32_t> sizes,
                              Span<const uint8_t> bytes) const {
  if (!wants_value(id)) return {};
  DelegatePlace at;
  at.set(id.number);
  if (id.text != nullptr) at.set(StringView(id.text));
  if (!is_recorded(dtype)) {
    return message->fail(Code::InvalidArgument,
                         "the value of %s has dtype %d (%s), which traces cannot hold: convert it "
                         "to float32 or an integer dtype",
                         at.text(), static_cast<int>(dtype), dtype_name(dtype));
  }
  const HostTensor tensor(dtype, sizes, bytes.data());
  if (!tensor.valid()) {
    return message->fail(Code::InvalidArgument,
                         "the value of %s has sizes %s, which no tensor can have: at most %zu "
                         "dimensions, none negative, with strides of 32 bits",
                         at.text(), ShapeText(sizes).text(), kMaxRank);
  }
  const Tensor& value = tensor;
  const size_t width = element_size(dtype);
  const auto numel = static_cast<uint64_t>(value.numel);
  if (bytes.size() / width != numel || bytes.size() % width != 0 ||
      (bytes.data() == nullptr && numel > 0)) {
    return message->fail(Code::InvalidArgument,
                         "the value of %s has %zu bytes%s, but its sizes %s and dtype %s take %llu "
                         "elements of %zu bytes",
                         at.text(), bytes.size(), bytes.data() == nullptr ? " at NULL" : "",
                         ShapeText(sizes).text(), dtype_name(dtype),
                         static_cast<unsigned long long>(numel), width);
  }
  int64_t wide[2][kMaxRank];
  for (size_t i = 0; i < value.rank; ++i) {
    wide[0][i] = value.sizes[i];
    wide[1][i] = value.strides[i];
  }
  tracer->delegate_value(id, {bytes.data(), dtype, {wide[0], value.rank}, {wide[1], value.rank}});
  return {};
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
