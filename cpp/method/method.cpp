#include "rushlight/method/method.h"

#include "rushlight/method/method_loader.h"
#include "rushlight/method/running_method.h"
#include "rushlight/program/identity.h"

namespace rushlight {

size_t Method::structure_bytes(const MethodMeta& meta) {
  Structures unused;
  const size_t bytes = lay_out(meta.sizes(), nullptr, &unused);
  const size_t slack = Allocator::kAlignment - 1;  // for memory that is not aligned
  return bytes < SIZE_MAX - slack ? bytes + slack : SIZE_MAX;
}

Method::~Method() {
  if (parts_.values == nullptr) return;
  for (size_t i = 0; i < meta_.sizes().tensors; ++i) {
    if (parts_.tensors[i].grows) blocks_.release(parts_.tensors[i]);
  }
  blocks_.collect();
  if (options_.backends.code() != nullptr) options_.backends.code()->destroy(*this);
}

void Method::destroy_delegates() {
  for (size_t i = 0; i < meta_.sizes().delegates; ++i) {
    DelegateSlot& slot = parts_.delegates[i];
    if (slot.is_ready) slot.backend->destroy(slot.handle);
    slot.is_ready = false;
  }
}

Status Method::load(const Program& program, StringView name, const MethodMemory& memory,
                    const MethodOptions& options) {
  if (state_ != State::Empty) {
    return message_.fail(Code::AlreadyLoaded, "a Method loads once; make another object");
  }
  state_ = State::Failed;
  options_ = options;
  if (report() == nullptr) return load_all(program, name, memory);
  identity_ = identity_of(program);
  program_bytes_ = program.image().size();
  for (size_t i = program.n_methods(); i-- > 0;) {
    if (program.method_name(i) == name) index_ = static_cast<uint16_t>(i);
  }
  const RunningMethod running(*this);
  const Status status = load_all(program, name, memory);
  if (!status.ok()) report_load(memory, status);
  return status;
}

Status Method::load_all(const Program& program, StringView name, const MethodMemory& memory) {
  message_.clear();
  if (memory.structures == nullptr || options_.kernels == nullptr) {
    return message_.fail(
        Code::InvalidArgument, "%s is nullptr",
        options_.kernels == nullptr ? "MethodOptions::kernels" : "MethodMemory::structures");
  }
  tracer_ = options_.tracer;
  RL_TRY(check_features());
  Result<MethodMeta> meta = program.method_meta(name, &message_);
  if (!meta.ok()) return meta.status();
  meta_ = meta.value();
  scratch_ = memory.scratch;
  blocks_.set_allocator(options_.blocks);
  StringView duplicate;
  if (options_.external_data != nullptr) {
    duplicate = find_duplicate(program, *options_.external_data);
  }
  if (!duplicate.empty()) {
    return message_.fail(Code::InvalidArgument,
                         "'%.*s' is both in the program and in the data that was given",
                         duplicate.len(), duplicate.data());
  }

  const size_t used = memory.structures->used();
  if (tracer() != nullptr) tracer()->begin("Method::init", this->name());
  const Status status = MethodLoader(*this, memory).load();
  if (tracer() != nullptr && status.ok()) {
    for (size_t k = 0; k < meta_.n_arenas(); ++k) {
      tracer()->allocation("planned memory", static_cast<int32_t>(k + 1), meta_.arena_bytes(k));
    }
    tracer()->allocation("structures", -1, memory.structures->used() - used);
  }
  if (tracer() != nullptr) tracer()->end("Method::init");
  if (!status.ok()) {
    // Now, because callers may keep a failed method for a long time.
    if (parts_.values != nullptr && options_.backends.code() != nullptr) {
      options_.backends.code()->destroy(*this);
    }
    return named(status);
  }
  message_.clear();
  state_ = State::Ready;
  return {};
}

// Refuses what this build leaves out. In a build with everything there is nothing to check.
Status Method::check_features() {
  if (!kHasTracing && tracer_ != nullptr) {
    return message_.fail(Code::NotSupported,
                         "a tracer was given, but this runtime was built without tracing: build it "
                         "with RUSHLIGHT_TRACING=ON, or give no tracer");
  }
  if (!kHasFailureReports && options_.failure.report != nullptr) {
    return message_.fail(Code::NotSupported,
                         "a failure report was asked for, but this runtime was built without them: "
                         "build it with RUSHLIGHT_FAILURE_REPORTS=ON, or ask for none");
  }
  return {};
}

Status Method::named(Status status) {
  const StringView name = this->name();
  message_.prepend("%.*s: ", name.len(), name.data());
  return status;
}

bool Method::next_missing_operator(uint32_t* cursor, MissingOperator* missing) const {
  if (parts_.kernels == nullptr) return false;
  for (; *cursor < n_instructions_; ++*cursor) {
    const Instruction& instruction = parts_.instructions[*cursor];
    if (instruction.kind != InstructionKind::Kernel || parts_.kernels[*cursor] != nullptr) continue;
    missing->instruction = place_of(*cursor).instruction;
    missing->name = meta_.operator_name(instruction.target);
    char buffer[256];
    missing->other_types = options_.kernels->has(missing->name.join(buffer, sizeof(buffer)));
    ++*cursor;
    return true;
  }
  return false;
}

bool Method::next_missing_backend(uint32_t* cursor, MissingBackend* missing) const {
  if (parts_.delegates == nullptr) return false;
  while (*cursor < meta_.n_delegates()) {
    missing->delegate = (*cursor)++;
    missing->id = meta_.delegate_id(missing->delegate);
    const Backend* backend = options_.backends.find(missing->id);
    missing->registered = backend != nullptr;
    if (backend == nullptr || !backend->available()) return true;
  }
  return false;
}

Method::Place Method::place_of(uint32_t pc) const {
  uint32_t low = 0;  // the first chain that ends after pc
  uint32_t high = static_cast<uint32_t>(meta_.sizes().chains) - 1;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (parts_.chain_ends[middle] > pc) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return {low, low == 0 ? pc : pc - parts_.chain_ends[low - 1]};
}

uint32_t Method::delegate_of(uint32_t chain, uint32_t instruction) const {
  if (state_ != State::Ready || chain >= meta_.sizes().chains) return kNoDelegate;
  const uint32_t start = chain == 0 ? 0 : parts_.chain_ends[chain - 1];
  if (instruction >= parts_.chain_ends[chain] - start) return kNoDelegate;
  const Instruction& failed = parts_.instructions[start + instruction];
  return failed.kind == InstructionKind::Delegate ? failed.target : kNoDelegate;
}

StringView Method::instruction_name(uint32_t chain, uint32_t instruction) const {
  if (state_ != State::Ready || chain >= meta_.sizes().chains) return "?";
  const uint32_t start = chain == 0 ? 0 : parts_.chain_ends[chain - 1];
  const bool is_there = instruction < parts_.chain_ends[chain] - start;
  return is_there ? instruction_name(start + instruction) : "?";
}

StringView Method::instruction_name(uint32_t pc) const {
  if (state_ != State::Ready || pc >= n_instructions_) return "?";
  const Instruction& instruction = parts_.instructions[pc];
  switch (instruction.kind) {
    case InstructionKind::Kernel:
      return parts_.kernels[pc]->name;
    case InstructionKind::Delegate:
      return meta_.delegate_id(instruction.target);
    case InstructionKind::Move:
      return "move";
    case InstructionKind::JumpFalse:
      return "jump if false";
    case InstructionKind::Free:
      return "free";
  }
  return "?";
}

}  // namespace rushlight
