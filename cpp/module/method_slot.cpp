#include "rushlight/module/method_slot.h"

#include <new>

#include "rushlight/program/program_fb.h"

namespace rushlight {
namespace {

constexpr size_t kArenaAlignment = 64;
constexpr size_t kMaxSharedArenas = 64;  // bits of MethodMemory::shared_arenas

// SIZE_MAX stands for "too much"; adding to it gives SIZE_MAX.
size_t add(size_t a, size_t b) { return b <= SIZE_MAX - a ? a + b : SIZE_MAX; }

size_t padded(size_t bytes) {
  const size_t more = add(bytes, kArenaAlignment - 1);
  return more == SIZE_MAX ? more : more / kArenaAlignment * kArenaAlignment;
}

bool needs_memory(const ValueMeta& output) {
  return output.tag == Tag::Tensor && !output.tensor.planned && !output.tensor.constant &&
         output.tensor.dynamism != Dynamism::Unbounded;
}

Span<uint8_t> find_shared(const SharedArena* shared, size_t k) {
  for (; shared != nullptr; shared = shared->next) {
    if (shared->index == k) return shared->pages.span();
  }
  return {};
}

bool has_dynamic_tensors(const MethodMeta& meta) {
  const fb::Tables<fb::EValue> values = meta.plan().values();
  for (size_t i = 0; i < values.size(); ++i) {
    const fb::Tensor tensor = values[i].val_as_Tensor();
    if (tensor.present() && tensor.shape_dynamism() != fb::TensorShapeDynamism::STATIC) return true;
  }
  return false;
}

// Gives unplanned outputs memory after the arenas, which are the first `used` bytes of the slot.
Status give_outputs(MethodSlot& slot, size_t used) {
  for (size_t i = 0; i < slot.method.n_outputs(); ++i) {
    if (!slot.method.output_needs_data(i)) continue;
    const size_t bytes = slot.method.meta().output(i).tensor.nbytes;
    RL_TRY(slot.method.set_output_data(i, slot.arenas.data() + used, bytes));
    used += padded(bytes);
  }
  return {};
}

}  // namespace

bool is_shared_arena(const MethodMeta& meta, size_t k) {
  if (k == 0 || k >= kMaxSharedArenas) return false;
  const fb::Tables<fb::ExecutionPlan> plans = meta.program().root().execution_plan();
  size_t n_users = 0;
  for (size_t i = 0; i < plans.size(); ++i) {
    const fb::Vector<int64_t> sizes = plans[i].non_const_buffer_sizes();
    if (sizes.size() <= k + 1 || sizes[k + 1] == 0) continue;
    if (static_cast<uint64_t>(sizes[k + 1]) != meta.arena_bytes(k)) return false;
    ++n_users;
  }
  return n_users > 1;
}

MemoryUse measure_method(const MethodMeta& meta, size_t scratch_bytes) {
  size_t own = 0;
  size_t shared = 0;
  size_t outputs = 0;
  for (size_t k = 0; k < meta.n_arenas(); ++k) {
    size_t& sum = is_shared_arena(meta, k) ? shared : own;
    sum = add(sum, padded(meta.arena_bytes(k)));
  }
  for (size_t i = 0; i < meta.n_outputs(); ++i) {
    const ValueMeta output = meta.output(i);
    if (needs_memory(output)) outputs = add(outputs, padded(output.tensor.nbytes));
  }
  MemoryUse use;
  use.arenas = own;
  use.shared_arenas = shared;
  use.outputs = outputs;
  use.structures = add(Method::structure_bytes(meta), HeapAllocator::kOverhead);
  use.scratch = meta.n_instructions() > 0 ? scratch_bytes : 0;
  return use;
}

Status load_method(MethodSlot& slot, const MethodMeta& meta, const SharedArena* shared,
                   MethodOptions options, Message& message) {
  const size_t n_arenas = meta.n_arenas();
  Span<uint8_t>* arenas = slot.spans = new (std::nothrow) Span<uint8_t>[n_arenas];
  const bool reserved = arenas != nullptr &&
                        slot.arenas.reserve(add(slot.use.arenas, slot.use.outputs)) &&
                        slot.scratch_pages.reserve(slot.use.scratch);
  if (!reserved) {
    return message.fail(
        Code::MemoryAllocationFailed,
        "%.*s: the system does not have %llu bytes for its arenas, scratch and outputs",
        meta.name().len(), meta.name().data(), static_cast<unsigned long long>(slot.use.total()));
  }
  const bool is_dynamic = has_dynamic_tensors(meta);
  if (is_dynamic) {
    slot.arenas.use_small_pages();
    options.sizes_observer = &slot.keeper;
  }
  slot.scratch = Allocator(slot.scratch_pages.data(), slot.scratch_pages.size());
  MethodMemory memory = {};
  memory.structures = &slot.structures;
  memory.scratch = &slot.scratch;
  memory.zeroed_arenas = ~uint64_t{0};
  size_t used = 0;
  for (size_t k = 0; k < n_arenas; ++k) {
    arenas[k] = find_shared(shared, k);
    if (!arenas[k].empty()) {
      memory.shared_arenas |= uint64_t{1} << k;
      continue;
    }
    arenas[k] = {slot.arenas.data() + used, meta.arena_bytes(k)};
    used += padded(meta.arena_bytes(k));
  }
  memory.arenas = {arenas, n_arenas};
  Status status = slot.method.load(meta.program(), meta.name(), memory, options);
  if (status.ok()) status = give_outputs(slot, used);
  if (!status.ok()) message = slot.method.message();
  if (!status.ok() || !is_dynamic || slot.keeper.watch(slot.method, slot.arenas)) return status;
  return message.fail(Code::MemoryAllocationFailed, "the system has no memory left");
}

}  // namespace rushlight
