// State of a module: finds it in the plans of its methods, and reads and writes it in place.
#include <algorithm>
#include <cstring>
#include <new>
#include <type_traits>

#include "rushlight/method/initial_state.h"
#include "rushlight/module/method_slot.h"
#include "rushlight/module/module.h"
#include "rushlight/module/shared_program.h"
#include "rushlight/program/plan_check.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {
namespace {

// The beginning of a snapshot, followed by the generator and the bytes of the entries in order. It
// is in the byte order of the machine.
struct SnapshotHead {
  char magic[8];
  uint64_t fingerprint;
  uint64_t bytes;  // number of bytes that follow
};
constexpr char kMagic[] = "RLSTATE2";
static_assert(std::is_trivially_copyable_v<Generator>, "a snapshot holds its bytes");

bool has_name(fb::Tensor tensor) {
  return !tensor.extra_tensor_info().fully_qualified_name().empty();
}

// If a file has no names (ExecuTorch's default), state is what operators write in place.
void mark_written_in_place(const MethodMeta& meta, Span<bool> marks) {
  const fb::ExecutionPlan plan = meta.plan();
  for (size_t c = 0; c < plan.chains().size(); ++c) {
    const fb::Tables<fb::Instruction> instructions = plan.chains()[c].instructions();
    for (size_t i = 0; i < instructions.size(); ++i) {
      const fb::KernelCall call = instructions[i].instr_args_as_KernelCall();
      if (!call.present() || call.args().size() == 0) continue;
      const StringView name = meta.operator_name(static_cast<size_t>(call.op_index())).name;
      if (name.empty() || name.data()[name.size() - 1] != '_') continue;
      const size_t value = static_cast<size_t>(call.args()[0]);
      const fb::Tensor tensor = plan.values()[value].val_as_Tensor();
      if (value < marks.size() && tensor.present() && is_planned(tensor)) marks[value] = true;
    }
  }
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    const size_t value = static_cast<size_t>(plan.inputs()[i]);
    if (value < marks.size()) marks[value] = false;
  }
}

void mark_state(const MethodMeta& meta, Span<bool> marks) {
  bool named = false;
  for (size_t i = 0; i < marks.size(); ++i) {
    const fb::Tensor tensor = meta.plan().values()[i].val_as_Tensor();
    if (!tensor.present() || !is_planned(tensor)) continue;
    marks[i] = has_file_data(tensor) || has_name(tensor);
    named = named || has_name(tensor);
  }
  if (!named) mark_written_in_place(meta, marks);
}

// Calls visit(i) for each value of a method that is state. False if there is not enough memory.
template <class Visit>
bool each_state(const MethodMeta& meta, Visit visit) {
  const size_t n = meta.n_values();
  bool* marks = new (std::nothrow) bool[n + 1]();
  if (marks == nullptr) return false;
  mark_state(meta, {marks, n});
  for (size_t i = 0; i < n; ++i) {
    if (marks[i]) visit(i);
  }
  delete[] marks;
  return true;
}

StateEntry entry_of(const MethodSlot& slot, size_t i) {
  const MethodMeta& meta = slot.method.meta();
  const fb::Tensor tensor = meta.plan().values()[i].val_as_Tensor();
  StateEntry entry;
  entry.name = tensor.extra_tensor_info().fully_qualified_name();
  entry.method = meta.name();
  entry.value = i;
  entry.tensor = meta.value(i).tensor;
  const fb::AllocationDetails place = tensor.allocation_info();
  const Span<uint8_t> arena = slot.spans[place.memory_id() - 1];
  if (!arena.empty()) entry.data = arena.data() + arena_offset(place);
  return entry;
}

// Removes all but the first of several entries at the same bytes, and keeps the order. False if
// there is not enough memory.
bool drop_repeated(StateEntry* entries, size_t* n) {
  if (*n < 2) return true;
  const StateEntry** by_place = new (std::nothrow) const StateEntry*[*n];
  if (by_place == nullptr) return false;
  for (size_t i = 0; i < *n; ++i) by_place[i] = &entries[i];
  std::sort(by_place, by_place + *n, [](const StateEntry* a, const StateEntry* b) {
    return a->data != b->data ? a->data < b->data : a < b;
  });
  for (size_t i = *n; i-- > 1;) {
    if (by_place[i]->data != by_place[i - 1]->data || by_place[i]->tensor.nbytes == 0) continue;
    entries[by_place[i] - entries].method = {};  // marks it: a method always has a name
  }
  delete[] by_place;
  StateEntry* end =
      std::remove_if(entries, entries + *n, [](const StateEntry& e) { return e.method.empty(); });
  *n = static_cast<size_t>(end - entries);
  return true;
}

// FNV-1a hash of the properties that must be equal for a snapshot to fit.
uint64_t fingerprint(Span<const StateEntry> entries) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211u;
    }
  };
  for (const StateEntry& entry : entries) {
    const TensorMeta& tensor = entry.tensor;
    add(entry.method.data(), entry.method.size());
    add(entry.name.data(), entry.name.size());
    add(&entry.value, sizeof(entry.value));
    add(&tensor.dtype, sizeof(tensor.dtype));
    add(tensor.sizes, tensor.rank * sizeof(tensor.sizes[0]));
    add(tensor.dim_order, tensor.rank);
  }
  return hash;
}

SnapshotHead head_of(Span<const StateEntry> entries) {
  SnapshotHead head = {};
  std::memcpy(head.magic, kMagic, sizeof(head.magic));
  head.fingerprint = fingerprint(entries);
  head.bytes = sizeof(Generator);
  for (const StateEntry& entry : entries) head.bytes += entry.tensor.nbytes;
  return head;
}

}  // namespace

void Module::forget_state() {
  delete[] state_;
  state_ = nullptr;
}

Status Module::list_state() {
  size_t n = 0;
  bool enough = true;
  for (size_t m = 0; m < program().n_methods(); ++m) {
    if (slots_[m] == nullptr) continue;
    enough = each_state(slots_[m]->method.meta(), [&n](size_t) { ++n; }) && enough;
  }
  StateEntry* entries = new (std::nothrow) StateEntry[n + 1];
  enough = enough && entries != nullptr;
  size_t used = 0;
  for (size_t m = 0; enough && m < program().n_methods(); ++m) {
    if (slots_[m] == nullptr) continue;
    enough = each_state(slots_[m]->method.meta(), [&](size_t i) {
      if (used < n) entries[used++] = entry_of(*slots_[m], i);
    });
  }
  if (!enough || !drop_repeated(entries, &used)) {
    delete[] entries;
    return out_of_memory();
  }
  state_ = entries;
  n_state_ = used;
  return {};
}

Result<Span<const StateEntry>> Module::state() {
  if (!is_open()) return message_.fail(Code::InvalidState, "no program is open");
  RL_TRY(check_files());
  if (state_ == nullptr) RL_TRY(list_state());
  return Span<const StateEntry>(state_, n_state_);
}

Result<const StateEntry*> Module::find_state(StringView name) {
  Result<Span<const StateEntry>> entries = state();
  if (!entries.ok()) return entries.status();
  const StateEntry* match = nullptr;
  for (const StateEntry& entry : entries.value()) {
    if (!(entry.name == name)) continue;
    if (match != nullptr) {
      return message_.fail(Code::InvalidArgument,
                           "%.*s and %.*s have each a state of their own called '%.*s'",
                           match->method.len(), match->method.data(), entry.method.len(),
                           entry.method.data(), name.len(), name.data());
    }
    match = &entry;
  }
  if (match != nullptr) return match;
  return message_.fail(Code::NotFound, "no loaded method has a state called '%.*s'", name.len(),
                       name.data());
}

Status Module::check_not_in_steps() {
  for (size_t m = 0; m < program().n_methods(); ++m) {
    if (slots_[m] == nullptr || !slots_[m]->method.in_steps()) continue;
    const StringView name = program().method_name(m);
    return message_.fail(Code::InvalidState,
                         "%.*s runs in steps: its state is settled when it is done and reset()",
                         name.len(), name.data());
  }
  return {};
}

Result<size_t> Module::snapshot_bytes() {
  Result<Span<const StateEntry>> entries = state();
  if (!entries.ok()) return entries.status();
  return sizeof(SnapshotHead) + static_cast<size_t>(head_of(entries.value()).bytes);
}

Status Module::snapshot(void* to, size_t bytes) {
  Result<Span<const StateEntry>> entries = state();
  if (!entries.ok()) return entries.status();
  RL_TRY(check_not_in_steps());
  const SnapshotHead head = head_of(entries.value());
  if (bytes < sizeof(head) || bytes - sizeof(head) < head.bytes) {
    return message_.fail(Code::InvalidArgument, "a snapshot takes %zu bytes, %zu were given",
                         sizeof(head) + static_cast<size_t>(head.bytes), bytes);
  }
  uint8_t* at = static_cast<uint8_t*>(to);
  std::memcpy(at, &head, sizeof(head));
  at += sizeof(head);
  std::memcpy(at, &generator_, sizeof(generator_));
  at += sizeof(generator_);
  for (const StateEntry& entry : entries.value()) {
    if (entry.tensor.nbytes > 0) std::memcpy(at, entry.data, entry.tensor.nbytes);
    at += entry.tensor.nbytes;
  }
  return {};
}

Status Module::restore(const void* from, size_t bytes) {
  Result<Span<const StateEntry>> entries = state();
  if (!entries.ok()) return entries.status();
  RL_TRY(check_not_in_steps());
  const SnapshotHead head = head_of(entries.value());
  const uint8_t* at = static_cast<const uint8_t*>(from);
  bool fits = bytes >= sizeof(head) && bytes - sizeof(head) == head.bytes &&
              std::memcmp(at, &head, sizeof(head)) == 0;
  Generator generator;
  if (fits) {
    at += sizeof(head);
    std::memcpy(&generator, at, sizeof(generator));
    at += sizeof(generator);
    fits = generator.valid();
  }
  if (!fits) {
    return message_.fail(Code::InvalidArgument,
                         "these %zu bytes are not a snapshot of this program's state with the same "
                         "methods loaded; such a one has %zu",
                         bytes, sizeof(head) + static_cast<size_t>(head.bytes));
  }
  generator_ = generator;
  for (const StateEntry& entry : entries.value()) {
    if (entry.tensor.nbytes > 0) std::memcpy(entry.data, at, entry.tensor.nbytes);
    at += entry.tensor.nbytes;
  }
  return {};
}

Status Module::reset_state() {
  Result<Span<const StateEntry>> entries = state();
  if (!entries.ok()) return entries.status();
  RL_TRY(check_not_in_steps());
  for (const StateEntry& entry : entries.value()) {
    if (entry.tensor.nbytes > 0) std::memset(entry.data, 0, entry.tensor.nbytes);
  }
  for (size_t m = 0; m < program().n_methods(); ++m) {
    if (slots_[m] == nullptr) continue;
    const MethodMeta& meta = slots_[m]->method.meta();
    for (size_t k = 0; k < meta.n_arenas(); ++k) {
      RL_TRY(write_initial_state(meta, k, slots_[m]->spans[k], shared_->external(), message_));
    }
  }
  for (const SharedArena* a = arenas_; a != nullptr; a = a->next) RL_TRY(write_shared_state(*a));
  return {};
}

Status Module::fork(Module& copy) {
  Result<Span<const StateEntry>> mine = state();
  if (!mine.ok()) return copy.message_.fail(mine.status().code(), "%s", message_.text());
  if (!check_not_in_steps().ok()) {
    return copy.message_.fail(Code::InvalidState, "%s", message_.text());
  }
  RL_TRY(clone(copy));
  copy.generator_ = generator_;
  for (size_t m = 0; m < program().n_methods(); ++m) {
    if (slots_[m] != nullptr) RL_TRY(copy.load(program().method_name(m)));
  }
  Result<Span<const StateEntry>> theirs = copy.state();
  if (!theirs.ok()) return theirs.status();
  for (size_t i = 0; i < mine->size(); ++i) {  // of the same plans, so in the same order
    const StateEntry& from = (*mine)[i];
    if (from.tensor.nbytes > 0) std::memcpy((*theirs)[i].data, from.data, from.tensor.nbytes);
  }
  return {};
}

}  // namespace rushlight
