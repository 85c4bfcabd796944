#include "rushlight/kernel/foreign_kernel.h"

namespace rushlight {
namespace {

// Calls visit(index, tensor) for each tensor that the kernel writes.
template <typename Visit>
void for_each_result(const Kernel& kernel, EValue* const* args, Visit visit) {
  size_t i = 0;
  for (const char* at = kernel.signature; *at != '\0' && *at != '='; ++at, ++i) {
    if (*at == '?') ++at;
    const EValue& value = *args[i];
    if (*at == 'w' && value.is_tensor()) visit(i, value.tensor());
    for (size_t k = 0; *at == 'W' && k < value.size(); ++k) {
      if (value.tensor_at(k) != nullptr) visit(i, *value.tensor_at(k));
    }
  }
}

Status fail_memory(const Kernel& kernel, KernelContext& ctx, EValue* const* args,
                   const ArenaShadow& shadow, ChangedByte byte) {
  size_t nearest = 0;
  size_t distance = SIZE_MAX;
  for_each_result(kernel, args, [&](size_t i, const Tensor& result) {
    const size_t at = offset_in(result.data, shadow.address(byte));
    if (at == SIZE_MAX || at - room_of(result) >= distance) return;
    nearest = i;
    distance = at - room_of(result);
  });
  if (distance < shadow.arena_bytes(byte.arena)) {
    return ctx.fail(Code::Internal,
                    "the kernel wrote past the end of argument %zu: %zu bytes behind it", nearest,
                    distance);
  }
  return ctx.fail(Code::Internal,
                  "the kernel wrote to memory that is none of its results: byte %zu of memory %zu",
                  byte.offset, byte.arena + 1);
}

}  // namespace

Status ForeignKernel::learn(size_t n_args, Message& message) const {
  uint32_t known = 0;
  const auto count = static_cast<uint32_t>(n_args);
  if (n_args_.compare_exchange_strong(known, count) || known == count) return {};
  return message.fail(Code::InvalidProgram, "%lu arguments, but an earlier call had %lu",
                      static_cast<unsigned long>(count), static_cast<unsigned long>(known));
}

Status run_guarded(const Kernel& kernel, KernelContext& ctx, EValue* const* args,
                   ArenaShadow shadow) {
  if (takes_any(kernel)) return kernel.fn(ctx, args);  // what its results are is not known
  shadow.copy();
  const Status status = kernel.fn(ctx, args);
  for_each_result(kernel, args, [&](size_t, const Tensor& result) { shadow.accept(result); });
  ChangedByte byte;
  if (!shadow.restore(&byte) || !status.ok()) return status;
  return fail_memory(kernel, ctx, args, shadow, byte);
}

}  // namespace rushlight
