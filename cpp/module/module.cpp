#include "rushlight/module/module.h"

#include <new>

#include "rushlight/method/initial_state.h"
#include "rushlight/module/method_slot.h"
#include "rushlight/module/shared_program.h"
#include "rushlight/platform/platform.h"
#include "rushlight/program/data_pair.h"
#include "rushlight/program/identity.h"

namespace rushlight {

bool checks_backends_by_default() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

Module::~Module() { close(); }

void Module::close() {
  if (shared_ == nullptr) return;
  forget_state();
  for (size_t i = 0; i < n_slots_; ++i) delete slots_[i];  // without a check of the files
  delete[] slots_;
  delete failed_;
  while (arenas_ != nullptr) {
    SharedArena* next = arenas_->next;
    delete arenas_;
    arenas_ = next;
  }
  shared_->release();
  shared_ = nullptr;
  slots_ = nullptr;
  failed_ = nullptr;
  in_use_ = 0;
}

Status Module::out_of_memory() {
  return message_.fail(Code::MemoryAllocationFailed, "the system has no memory left");
}

Status Module::open(const char* path, const ModuleOptions& options) {
  SharedProgram* shared = new (std::nothrow) SharedProgram;
  if (shared == nullptr) return out_of_memory();
  const Status opened = shared->file.open(path, {options.map, options.guard}, message_);
  if (!opened.ok()) {
    delete shared;
    message_.prepend("%s: ", path);
    return opened;
  }
  shared->loader = ImageLoader(&shared->file);
  return open_shared(shared, options);
}

Status Module::open_memory(const void* data, size_t size, const ModuleOptions& options) {
  SharedProgram* shared = new (std::nothrow) SharedProgram;
  if (shared == nullptr) return out_of_memory();
  shared->loader = ImageLoader(data, size);
  return open_shared(shared, options);
}

Status Module::open_shared(SharedProgram* shared, const ModuleOptions& options) {
  Status status = find_program(*shared);
  if (status.ok()) {
    status = shared->program.load(shared->loader);
    if (!status.ok()) message_ = shared->program.message();
  }
  if (status.ok()) {
    shared->order = new (std::nothrow) uint32_t[shared->program.n_keys()];
    if (shared->order == nullptr) status = out_of_memory();
  }
  if (status.ok()) {
    shared->program.sort_keys(shared->order);
    status = adopt(shared, options);
  }
  if (!status.ok()) {
    shared->release();
    return status;
  }
  if (options.data_path == nullptr) return {};
  status = add_data(options.data_path);
  if (!status.ok()) close();
  return status;
}

// The loader of a bundled program becomes that of the program in it.
Status Module::find_program(SharedProgram& shared) {
  Result<Span<const uint8_t>> file = shared.loader.load(0, shared.loader.size());
  if (!file.ok() || !Bundle::is_bundle(file.value())) return {};
  RL_TRY(shared.bundle.load(file.value(), message_));
  shared.loader = ImageLoader(shared.loader, shared.bundle.program());
  return {};
}

const Bundle* Module::bundle() const {
  return is_open() && shared_->bundle.loaded() ? &shared_->bundle : nullptr;
}

// Takes over one reference of `shared`, unless it fails.
Status Module::adopt(SharedProgram* shared, const ModuleOptions& options) {
  const size_t n_slots = shared->program.n_methods();
  MethodSlot** slots = new (std::nothrow) MethodSlot* [n_slots] {};
  if (slots == nullptr) return out_of_memory();
  close();
  shared_ = shared;
  slots_ = slots;
  n_slots_ = n_slots;
  options_ = options;
  generator_ = Generator();
  options_.data_path = nullptr;  // already read, or read by open_shared from its own copy
  count(0);
  workers_ = PoolWorkers(threads_for(options.threads));
  if (options_.kernels == nullptr) options_.kernels = default_kernels();
  if (options_.backends == nullptr) options_.backends = default_backends();
  message_.clear();
  if (options_.kernels != nullptr) return {};
  static const KernelTable none;
  options_.kernels = &none;
  return {};
}

Status Module::add_data(const char* path) {
  DataFile* file = new (std::nothrow) DataFile;
  if (file == nullptr) return out_of_memory();
  Status status = file->file.open(path, {options_.map, options_.guard}, message_);
  if (status.ok()) {
    file->loader = ImageLoader(&file->file);
    status = add_data_file(file);
  } else {
    delete file;
  }
  if (!status.ok()) message_.prepend("%s: ", path);
  return status;
}

Status Module::add_data_memory(const void* data, size_t size) {
  DataFile* file = new (std::nothrow) DataFile;
  if (file == nullptr) return out_of_memory();
  file->loader = ImageLoader(data, size);
  return add_data_file(file);
}

// Whether a program is open, no method is loaded, and there is no clone.
bool Module::is_unused() const {
  bool unused = is_open() && shared_->users.load() == 1;
  for (size_t i = 0; unused && i < n_slots_; ++i) unused = slots_[i] == nullptr;
  return unused;
}

Status Module::add_data_file(DataFile* file) {
  Status status;
  if (!is_unused()) {
    status = message_.fail(Code::InvalidState,
                           "data is added after a program was opened, before a method is loaded "
                           "and before the module is cloned");
  } else {
    status = file->data.load(file->loader);
    if (!status.ok()) message_ = file->data.message();
  }
  if (status.ok()) {
    file->order = new (std::nothrow) uint32_t[file->data.n_keys()];
    if (file->order != nullptr) file->data.sort_keys(file->order);
    status =
        file->order != nullptr ? check_data_pair(program(), file->data, message_) : out_of_memory();
  }
  if (status.ok()) {
    const NamedData* before = shared_->external();
    file->all = MergedData(before, &file->data);
    StringView duplicate;
    if (before != nullptr) duplicate = find_duplicate(*before, file->data);
    if (!duplicate.empty()) {
      status = message_.fail(Code::InvalidArgument, "'%.*s' is in two of the data files",
                             duplicate.len(), duplicate.data());
    }
  }
  if (!status.ok()) {
    delete file;
    return status;
  }
  file->previous = shared_->data;
  shared_->data = file;
  return {};
}

Status Module::check_files() { return is_open() ? shared_->check(message_) : Status(); }

const Program& Module::program() const { return shared_->program; }

const NamedData* Module::external_data() const { return shared_->external(); }

size_t Module::find(StringView name) const {
  const size_t n = is_open() ? program().n_methods() : 0;
  for (size_t i = 0; i < n; ++i) {
    if (program().method_name(i) == name) return i;
  }
  return n;
}

bool Module::is_loaded(StringView method) const {
  const size_t i = find(method);
  return is_open() && i < program().n_methods() && slots_[i] != nullptr;
}

const Method* Module::failed_method() const {
  return failed_ != nullptr ? &failed_->method : nullptr;
}

Result<MemoryUse> Module::memory_use(StringView method) {
  if (!is_open()) return message_.fail(Code::InvalidState, "no program is open");
  RL_TRY(check_files());
  Result<MethodMeta> meta = program().method_meta(method, &message_);
  if (!meta.ok()) return meta.status();
  return measure_method(meta.value(), options_.scratch_bytes);
}

// The memory of methods reduces the limit for tensors without bounds.
void Module::count(uint64_t in_use) {
  in_use_ = in_use;
  const uint64_t limit = options_.memory_limit != 0 ? options_.memory_limit - in_use : SIZE_MAX;
  blocks_.set_limit(limit < SIZE_MAX ? static_cast<size_t>(limit) : SIZE_MAX);
}

uint64_t Module::memory_resident() const {
  uint64_t bytes = blocks_.taken();
  for (size_t i = 0; is_open() && i < n_slots_; ++i) {
    const MethodSlot* slot = slots_[i];
    if (slot == nullptr) continue;
    bytes += slot->structures.taken() + slot->arenas.resident() + slot->scratch_pages.resident();
  }
  for (const SharedArena* a = arenas_; a != nullptr; a = a->next) bytes += a->pages.resident();
  return bytes;
}

void Module::set_tracer(Tracer* tracer) {
  options_.tracer = tracer;
  for (size_t i = 0; is_open() && i < n_slots_; ++i) {
    if (slots_[i] != nullptr) slots_[i]->method.set_tracer(tracer);
  }
}

Result<Method*> Module::method(StringView name) {
  RL_TRY(load(name));
  return &slots_[find(name)]->method;
}

void Module::unload(StringView method) {
  if (!is_loaded(method)) return;
  forget_state();
  MethodSlot*& slot = slots_[find(method)];
  count(in_use_ - slot->use.total());
  delete slot;
  slot = nullptr;
}

Status Module::load(StringView method) {
  if (!is_open()) return message_.fail(Code::InvalidState, "no program is open");
  if (options_.failure.report == nullptr || is_loaded(method)) return load_unreported(method);
  FailureReport& report = *options_.failure.report;
  report.clear();
  const Status status = load_unreported(method);
  if (!status.ok() && !report.has_failure()) report_load(method, status);
  return status;
}

// Reports what kept the module from beginning to load a method.
void Module::report_load(StringView method, Status status) const {
  const FailureHook& hook = options_.failure;
  FailureReport& report = *hook.report;
  const size_t index = find(method);
  report.program = identity_of(program());
  report.program_bytes = program().image().size();
  report.time_ns = now_ns();
  report.phase = static_cast<uint8_t>(FailurePhase::Load);
  report.code = static_cast<uint32_t>(status.code());
  report.method_index = static_cast<uint16_t>(index < program().n_methods() ? index : UINT16_MAX);
  set_text(report.method, method);
  set_text(report.message, StringView(message_.text()));
  const Result<MethodMeta> meta = program().method_meta(method);
  if (meta.ok() && status.code() == Code::OutOfResources) {
    const uint64_t taken = memory_in_use(), limit = options_.memory_limit;
    report.add_memory(FailureMemory::Limit, 0,
                      measure_method(meta.value(), options_.scratch_bytes).total(),
                      taken < limit ? limit - taken : 0);
  }
  report.seal();
  if (hook.on_failure != nullptr) hook.on_failure(report, hook.context);
}

Status Module::load_unreported(StringView method) {
  RL_TRY(check_files());
  if (is_loaded(method)) return {};
  delete failed_;
  failed_ = nullptr;
  Result<MethodMeta> meta = program().method_meta(method, &message_);
  if (!meta.ok()) return meta.status();
  MethodSlot* slot = new (std::nothrow) MethodSlot;
  if (slot == nullptr) return out_of_memory();
  Status status = load_slot(*slot, meta.value());
  if (!status.ok()) {
    failed_ = slot;
    return status;
  }
  slots_[find(method)] = slot;
  forget_state();
  return {};
}

Status Module::load_slot(MethodSlot& slot, const MethodMeta& meta) {
  slot.use = measure_method(meta, options_.scratch_bytes);
  for (const SharedArena* arena = arenas_; arena != nullptr; arena = arena->next) {
    const bool counted = arena->index < meta.n_arenas() && is_shared_arena(meta, arena->index);
    if (counted) slot.use.shared_arenas -= arena->pages.size();  // allocated with another method
  }
  RL_TRY(check_limit(meta, slot.use));
  RL_TRY(prepare_shared_arenas(meta));
  count(in_use_ + slot.use.shared_arenas);  // they stay, even if loading the method fails
  slot.use.shared_arenas = 0;

  MethodOptions options = {};
  options.kernels = options_.kernels;
  options.backends = options_.backends;
  options.backend_options = options_.backend_options;
  options.check_backends = options_.check_backends;
  options.external_data = shared_->external();
  options.guard = shared_->guard();
  options.tracer = options_.tracer;
  options.failure = options_.failure;
  options.cancelled = options_.cancelled;
  if (workers_.count() > 1) {
    workers_.start();  // now, since a run allocates nothing
    options.workers = &workers_;
  }
  options.blocks = &blocks_;
  options.generator = &generator_;
  options.max_instructions = options_.max_instructions;
  options.any_scalar_inputs = options_.any_scalar_inputs;
  if (options_.memory_limit != 0) {
    const uint64_t rest = options_.memory_limit - memory_in_use() - slot.use.arenas -
                          slot.use.outputs - slot.use.scratch;
    slot.structures.set_limit(rest < SIZE_MAX ? static_cast<size_t>(rest) : SIZE_MAX);
  }
  RL_TRY(load_method(slot, meta, arenas_, options, message_));
  slot.use.structures = slot.structures.taken();
  count(in_use_ + slot.use.total());
  return {};
}

Status Module::check_limit(const MethodMeta& meta, const MemoryUse& use) {
  const uint64_t limit = options_.memory_limit;
  const uint64_t taken = memory_in_use();
  if (limit == 0 || (taken <= limit && use.total() <= limit - taken)) return {};
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  return message_.fail(
      Code::OutOfResources,
      "%.*s takes %llu bytes (arenas %llu, structures %llu, outputs %llu, scratch %llu); %llu are "
      "in use already and the memory limit is %llu",
      meta.name().len(), meta.name().data(), number(use.total()),
      number(use.arenas + use.shared_arenas), number(use.structures), number(use.outputs),
      number(use.scratch), number(taken), number(limit));
}

// Creates the shared arenas of this method that do not exist yet, with the initial content that any
// method of the program has for them.
Status Module::prepare_shared_arenas(const MethodMeta& meta) {
  for (size_t k = 1; k < meta.n_arenas(); ++k) {
    bool known = !is_shared_arena(meta, k);
    for (const SharedArena* a = arenas_; a != nullptr; a = a->next) known = known || a->index == k;
    if (known) continue;
    SharedArena* arena = new (std::nothrow) SharedArena;
    if (arena == nullptr || !arena->pages.reserve(meta.arena_bytes(k))) {
      delete arena;
      return out_of_memory();
    }
    arena->index = k;
    arena->next = arenas_;
    arenas_ = arena;
    RL_TRY(write_shared_state(*arena));
  }
  return {};
}

// Writes the initial content that the methods of the program have for the arena.
Status Module::write_shared_state(const SharedArena& arena) {
  for (size_t i = 0; i < program().n_methods(); ++i) {
    Result<MethodMeta> meta = program().method_meta(program().method_name(i));
    if (!meta.ok() || meta->n_arenas() <= arena.index) continue;
    RL_TRY(write_initial_state(meta.value(), arena.index, arena.pages.span(), shared_->external(),
                               message_));
  }
  return {};
}

Status Module::clone(Module& copy) const {
  if (!is_open()) return copy.message_.fail(Code::InvalidState, "no program is open");
  RL_TRY(shared_->check(copy.message_));
  shared_->users.fetch_add(1);
  ModuleOptions options = options_;
  options.failure = copy.options_.failure;  // two threads must not fill one report
  options.cancelled = copy.options_.cancelled;
  const Status status = copy.adopt(shared_, options);
  if (!status.ok()) shared_->release();
  return status;
}

}  // namespace rushlight
