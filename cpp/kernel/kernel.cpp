#include "rushlight/kernel/kernel.h"

#include "rushlight/core/shape_text.h"

namespace rushlight {

Status KernelContext::fail(Code code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  const Status status = message_->vfail(code, format, args);
  va_end(args);
  return status;
}

Status KernelContext::resize(Tensor& out, Span<const int32_t> sizes) {
  const int64_t before = out.numel;
  if (out.grows) RL_TRY(grow(out, sizes));
  const Status status = out.resize(sizes);
  resized_ = resized_ || out.numel != before;
  if (status.ok()) return status;
  const ShapeText now(out.shape());
  const ShapeText wanted(sizes);
  if (out.read_only) {
    return fail(status.code(), "the output, of sizes %s, is a constant of the program", now.text());
  }
  if (out.dynamism == Dynamism::Static || sizes.size() != out.rank) {
    return fail(status.code(), "the result has sizes %s, but the output has the fixed %s %s",
                wanted.text(), sizes.size() != out.rank ? "rank of" : "sizes", now.text());
  }
  return fail(status.code(), "the result has sizes %s, but the output has room for %lld elements",
              wanted.text(), static_cast<long long>(out.capacity));
}

Status KernelContext::grow(Tensor& out, Span<const int32_t> sizes) {
  int64_t numel = 0;
  const bool counted = sizes.size() == out.rank && count_elements(sizes, &numel);
  if (!counted) return {};  // refused by the resize that follows
  if (blocks_ != nullptr && blocks_->fit(out, numel)) return {};
  return fail(Code::MemoryAllocationFailed,
              "the result has sizes %s of %zu bytes an element, and there is no memory for that; "
              "the output had %s and has no bound",
              ShapeText(sizes).text(), element_size(out.dtype), ShapeText(out.shape()).text());
}

void* KernelContext::scratch(size_t bytes) {
  return scratch_ != nullptr ? scratch_->allocate(bytes, kScratchAlignment) : nullptr;
}

size_t KernelContext::scratch_left() const {
  return scratch_ != nullptr ? scratch_->left(kScratchAlignment) : 0;
}

}  // namespace rushlight
