#include "rushlight/method/structures.h"

#include <cstring>

namespace rushlight {
namespace {

// One array of the block: where its pointer is in Structures, where its number of elements is in
// PlanSizes, and the size and the alignment of an element.
struct Part {
  uint8_t pointer;
  uint8_t count;
  uint8_t bytes;
  uint8_t alignment;
};

#define RL_PART(pointer, count, T) \
  {offsetof(Structures, pointer), offsetof(PlanSizes, count), sizeof(T), alignof(T)}

constexpr Part kParts[] = {
    RL_PART(constants, constant_copies, uint8_t),  // first: aligned to the block
    RL_PART(values, values, EValue),
    RL_PART(doubles, doubles, double),
    RL_PART(tensors, tensors, Tensor),
    RL_PART(instructions, instructions, Instruction),
    RL_PART(kernels, instructions, const Kernel*),
    RL_PART(args, args, EValue*),
    RL_PART(list_items, list_items, EValue*),
    RL_PART(inputs, inputs, InputSlot),
    RL_PART(outputs, outputs, OutputSlot),
    RL_PART(views, views, ViewSlot),
    RL_PART(delegates, delegates, DelegateSlot),
    RL_PART(specs, specs, CompileSpec),
    RL_PART(seals, delegate_args, ArgumentSeal),
    RL_PART(dims, dims, int32_t[2]),
    RL_PART(chain_ends, chains, uint32_t),
    RL_PART(is_given, given, uint8_t),
};

#undef RL_PART

}  // namespace

size_t lay_out(const PlanSizes& sizes, uint8_t* base, Structures* structures) {
  static_assert(alignof(EValue) <= Allocator::kAlignment, "the block is aligned for all");
  static_assert(sizeof(Structures) == sizeof(kParts) / sizeof(kParts[0]) * sizeof(void*),
                "all arrays are parts");
  size_t used = 0;
  for (const Part& part : kParts) {
    size_t n;
    std::memcpy(&n, reinterpret_cast<const char*>(&sizes) + part.count, sizeof(n));
    const size_t alignment = part.alignment;
    const size_t start = (used + alignment - 1) & ~(alignment - 1);
    if (start < used || n > (SIZE_MAX - start) / part.bytes) return SIZE_MAX;
    used = start + n * part.bytes;
    void* array = base != nullptr ? base + start : nullptr;
    std::memcpy(reinterpret_cast<char*>(structures) + part.pointer, &array, sizeof(array));
  }
  return used;
}

}  // namespace rushlight
