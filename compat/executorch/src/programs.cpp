// Programs and their methods in memory that the caller gives.
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <new>

#include "backends.h"
#include "kernels.h"
#include "methods.h"
#include "rushlight/method/method.h"
#include "rushlight/module/thread_pool.h"
#include "rushlight/program/loader.h"
#include "rushlight/program/program.h"
#include "thread_count.h"
#include "values.h"

namespace executorch::runtime {
namespace internal {

// What a Program points to.
struct LoadedProgram {
  explicit LoadedProgram(FreeableBuffer bytes) : image(std::move(bytes)) {}
  // Verifies the image, after copying it where it is not aligned.
  Error load();

  FreeableBuffer image;
  PlatformMemoryAllocator memory;
  ::rushlight::MemoryLoader loader{nullptr, 0};
  ::rushlight::Program program;
  PteDataMap named_data{&program};
};

Error LoadedProgram::load() {
  constexpr size_t kAlignment = 16;
  const void* bytes = image.data();
  if (reinterpret_cast<uintptr_t>(bytes) % kAlignment != 0) {
    void* copy = memory.allocate(image.size(), kAlignment);
    ET_CHECK_OR_RETURN_ERROR(copy != nullptr, MemoryAllocationFailed,
                             "the program's bytes are not aligned to %zu, and the platform has no "
                             "memory for a copy",
                             kAlignment);
    std::memcpy(copy, bytes, image.size());
    bytes = copy;
  }
  loader = {bytes, image.size()};
  const Error error = program.load(loader).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", program.message().text());
  return Error::Ok;
}

namespace {

constexpr size_t kScratchBytes = size_t{1} << 20;  // where the caller gives none

// A NamedDataMap of the application's as named data of the runtime's. What it handed out is kept.
class NamedDataOfMap final : public ::rushlight::NamedData {
 public:
  NamedDataOfMap(const NamedDataMap* map, MemoryAllocator* memory) : map_(map), memory_(memory) {}
  ~NamedDataOfMap() override {
    while (kept_ != nullptr) {
      Kept* next = kept_->next;
      kept_->~Kept();
      kept_ = next;
    }
  }

  ::rushlight::Result<::rushlight::Span<const uint8_t>> get(
      ::rushlight::StringView key) const override {
    Result<FreeableBuffer> data = map_->get_data({key.data(), key.size()});
    if (!data.ok()) return data.error();
    void* place = memory_->allocate(sizeof(Kept), alignof(Kept));
    if (place == nullptr) return Error::MemoryAllocationFailed;
    kept_ = new (place) Kept{std::move(*data), kept_};
    return ::rushlight::Span<const uint8_t>(static_cast<const uint8_t*>(kept_->data.data()),
                                            kept_->data.size());
  }
  ::rushlight::Result<::rushlight::TensorLayout> layout(
      ::rushlight::StringView key) const override {
    Result<const TensorLayout> layout = map_->get_tensor_layout({key.data(), key.size()});
    if (!layout.ok()) return layout.error();
    if (layout->sizes().size() > ::rushlight::kMaxRank) return Error::InvalidExternalData;
    ::rushlight::TensorLayout to;
    to.dtype = static_cast<::rushlight::DType>(layout->scalar_type());
    to.rank = static_cast<uint8_t>(layout->sizes().size());
    for (size_t i = 0; i < to.rank; ++i) {
      to.sizes[i] = layout->sizes()[i];
      to.dim_order[i] = layout->dim_order()[i];
    }
    return to;
  }
  size_t n_keys() const override {
    const Result<uint32_t> count = map_->get_num_keys();
    return count.ok() ? *count : 0;
  }
  ::rushlight::StringView key(size_t i) const override {
    const Result<const char*> key = map_->get_key(static_cast<uint32_t>(i));
    return key.ok() ? ::rushlight::StringView(*key) : ::rushlight::StringView();
  }

 private:
  struct Kept {
    FreeableBuffer data;
    Kept* next;
  };

  const NamedDataMap* map_;
  MemoryAllocator* memory_;
  mutable Kept* kept_ = nullptr;
};

// ExecuTorch's allocator as the runtime's.
class AllocatorOf final : public ::rushlight::Allocator {
 public:
  explicit AllocatorOf(MemoryAllocator* memory) : memory_(memory) {}
  void* allocate(size_t bytes, size_t alignment) override {
    used_ += bytes;
    size_ = used_;
    return memory_->allocate(bytes, alignment);
  }

 private:
  MemoryAllocator* memory_;
};

// A method in the caller's memory, with all that it needs beside it.
struct OwnedMethod final : public LoadedMethod {
  OwnedMethod(MemoryManager& memory, EventTracer* event_tracer, const NamedDataMap* data)
      : structures(memory.method_allocator()),
        events(event_tracer),
        external(data, memory.method_allocator()) {
    method = &own;
    tracer = event_tracer;
  }
  void destroy() override { this->~OwnedMethod(); }

  Error load(const LoadedProgram& program, const ::rushlight::MethodMeta& meta,
             MemoryManager& manager, const NamedDataMap* data,
             const LoadBackendOptionsMap* backend_options, Span<const Kernel> kernels);
  Error take_arenas(HierarchicalAllocator* planned,
                    ::rushlight::Span<const ::rushlight::Span<uint8_t>>* arenas);
  Error take_scratch(MemoryAllocator* temp);
  Error take_kernels(Span<const Kernel> kernels, const ::rushlight::KernelTable** table);
  Error take_options(const LoadBackendOptionsMap& map);

  AllocatorOf structures;
  PlatformMemoryAllocator platform;
  ::rushlight::Allocator scratch;
  TracerOfEvents events;
  NamedDataOfMap external;
  ::rushlight::BackendOptionsMap options;
  ::rushlight::PoolWorkers workers{
      ::rushlight::threads_for(extension::threadpool::internal::asked_threads())};
  ::rushlight::Generator generator;
  ::rushlight::Method own;  // destroyed first
};

Error OwnedMethod::take_arenas(HierarchicalAllocator* planned,
                               ::rushlight::Span<const ::rushlight::Span<uint8_t>>* arenas) {
  if (planned == nullptr) return Error::Ok;
  const Span<Span<uint8_t>> buffers = planned->rushlight_buffers();
  auto* spans = structures.allocate_array<::rushlight::Span<uint8_t>>(buffers.size());
  if (spans == nullptr && !buffers.empty()) return Error::MemoryAllocationFailed;
  for (size_t i = 0; i < buffers.size(); ++i) {
    new (&spans[i])::rushlight::Span<uint8_t>(buffers[i].data(), buffers[i].size());
  }
  *arenas = {spans, buffers.size()};
  return Error::Ok;
}

// The caller's temporary memory where it is one block, else a block from it or the platform.
Error OwnedMethod::take_scratch(MemoryAllocator* temp) {
  if (temp != nullptr && temp->base_address() != nullptr) {
    scratch = {temp->base_address(), temp->size()};
    return Error::Ok;
  }
  MemoryAllocator& from = temp != nullptr ? *temp : platform;
  void* block = from.allocate(kScratchBytes, ::rushlight::KernelContext::kScratchAlignment);
  if (block == nullptr) return Error::MemoryAllocationFailed;
  scratch = {block, kScratchBytes};
  return Error::Ok;
}

Error OwnedMethod::take_kernels(Span<const Kernel> kernels,
                                const ::rushlight::KernelTable** table) {
  *table = &registered_table();
  if (kernels.empty()) return Error::Ok;
  auto* own_table = structures.allocate_array<::rushlight::KernelTable>(1);
  auto* adopted = structures.allocate_array<AdoptedKernel>(kernels.size());
  if (own_table == nullptr || adopted == nullptr) return Error::MemoryAllocationFailed;
  for (size_t i = 0; i < kernels.size(); ++i) new (&adopted[i]) AdoptedKernel();
  *table = new (own_table)::rushlight::KernelTable();
  ET_CHECK_OK_OR_RETURN_ERROR(fill_table(kernels, adopted, *own_table));
  return Error::Ok;
}

Error OwnedMethod::take_options(const LoadBackendOptionsMap& map) {
  const size_t count = count_options(map);
  auto* own_options = structures.allocate_array<::rushlight::BackendOption>(count);
  if (own_options == nullptr && count > 0) return Error::MemoryAllocationFailed;
  for (size_t i = 0; i < count; ++i) new (&own_options[i])::rushlight::BackendOption();
  return translate_options(map, own_options, options);
}

Error OwnedMethod::load(const LoadedProgram& program, const ::rushlight::MethodMeta& meta,
                        MemoryManager& manager, const NamedDataMap* data,
                        const LoadBackendOptionsMap* backend_options, Span<const Kernel> kernels) {
  ::rushlight::MethodMemory memory = {&structures, {}};
  ::rushlight::MethodOptions with = {};
  void* view_memory = structures.allocate(view_bytes(meta), alignof(View));
  ET_CHECK_OR_RETURN_ERROR(view_memory != nullptr, MemoryAllocationFailed,
                           "the method's allocator is too small");
  ET_CHECK_OK_OR_RETURN_ERROR(take_arenas(manager.planned_memory(), &memory.arenas));
  ET_CHECK_OK_OR_RETURN_ERROR(take_scratch(manager.temp_allocator()));
  ET_CHECK_OK_OR_RETURN_ERROR(take_kernels(kernels, &with.kernels));
  if (backend_options != nullptr) {
    ET_CHECK_OK_OR_RETURN_ERROR(take_options(*backend_options));
    with.backend_options = &options;
  }
  memory.scratch = &scratch;
  with.backends = &registered_backends();
  with.external_data = data != nullptr ? &external : nullptr;
  with.tracer = events.rushlight();
  with.workers = &workers;
  with.generator = &generator;
  const Error error = own.load(program.program, meta.name(), memory, with).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", own.message().text());
  set_views(view_memory);
  return Error::Ok;
}

void destroy_program(LoadedProgram* program) {
  program->~LoadedProgram();
  pal_free(program);
}

}  // namespace
}  // namespace internal

Program::~Program() {
  if (loaded_ != nullptr) internal::destroy_program(loaded_);
}

Result<Program> Program::load(DataLoader* loader, Verification) {
  ET_CHECK_OR_RETURN_ERROR(loader != nullptr, InvalidArgument, "there is no loader");
  runtime_init();
  ET_ASSIGN_OR_RETURN(size, loader->size());
  const DataLoader::SegmentInfo info(DataLoader::SegmentInfo::Type::Program);
  ET_ASSIGN_OR_RETURN(image, loader->load(0, size, info));
  void* place = pal_allocate(sizeof(internal::LoadedProgram));
  ET_CHECK_OR_RETURN_ERROR(place != nullptr, MemoryAllocationFailed,
                           "the platform has no memory for a program");
  Program program(new (place) internal::LoadedProgram(std::move(image)));
  const Error error = program.loaded_->load();
  if (error != Error::Ok) return error;
  return program;
}

Result<const void*> Program::get_constant_buffer_data(size_t index, size_t nbytes) const {
  const ::rushlight::Span<const uint8_t> bytes = loaded_->program.constant(index);
  if (bytes.data() == nullptr) return Error::NotFound;
  ET_CHECK_OR_RETURN_ERROR(nbytes <= bytes.size(), InvalidArgument, "constant %zu has no %zu bytes",
                           index, nbytes);
  return static_cast<const void*>(bytes.data());
}

Result<const NamedDataMap*> Program::get_named_data_map() const {
  if (loaded_->program.n_keys() == 0) return Error::NotFound;
  return static_cast<const NamedDataMap*>(&loaded_->named_data);
}

size_t Program::num_methods() const { return loaded_->program.n_methods(); }

Result<const char*> Program::get_method_name(size_t index) const {
  ET_CHECK_OR_RETURN_ERROR(index < num_methods(), InvalidArgument,
                           "there is no method %zu among %zu", index, num_methods());
  return loaded_->program.method_name(index).data();
}

Result<MethodMeta> Program::method_meta(const char* method_name) const {
  ET_CHECK_OR_RETURN_ERROR(method_name != nullptr, InvalidArgument, "the method's name is null");
  ::rushlight::Message message;
  ::rushlight::Result<::rushlight::MethodMeta> meta =
      loaded_->program.method_meta(method_name, &message);
  if (!meta.ok()) {
    ET_LOG(Error, "%s", message.text());
    return meta.status().code();
  }
  return MethodMeta(meta.value());
}

Result<Method> Program::load_method(const char* method_name, MemoryManager* memory_manager,
                                    EventTracer* event_tracer, const NamedDataMap* named_data_map,
                                    const LoadBackendOptionsMap* backend_options,
                                    Span<const Kernel> kernel_registry) const {
  ET_CHECK_OR_RETURN_ERROR(
      memory_manager != nullptr && memory_manager->method_allocator() != nullptr, InvalidArgument,
      "a method needs a memory manager with an allocator");
  ET_ASSIGN_OR_RETURN(meta, method_meta(method_name));
  void* place = memory_manager->method_allocator()->allocate(sizeof(internal::OwnedMethod),
                                                             alignof(internal::OwnedMethod));
  ET_CHECK_OR_RETURN_ERROR(place != nullptr, MemoryAllocationFailed,
                           "the method's allocator is too small for %zu bytes",
                           sizeof(internal::OwnedMethod));
  auto* owned = new (place) internal::OwnedMethod(*memory_manager, event_tracer, named_data_map);
  Method method(owned);
  const Error error = owned->load(*loaded_, meta.rushlight(), *memory_manager, named_data_map,
                                  backend_options, kernel_registry);
  if (error != Error::Ok) return error;
  return method;
}

Span<const uint8_t> Program::rushlight_image() const {
  return {loaded_->program.image().data(), loaded_->program.image().size()};
}

Program::HeaderStatus Program::check_header(const void* data, size_t size) {
  if (size < kMinHeadBytes) return ShortData;
  const char* at = static_cast<const char*>(data);
  if (std::memcmp(at + 4, "ET", 2) != 0 || std::memcmp(at + 8, "eh", 2) != 0) return NotPresent;
  const bool fits = std::memcmp(at + 4, "ET12", 4) == 0 && std::memcmp(at + 8, "eh00", 4) == 0;
  return fits ? CompatibleVersion : IncompatibleVersion;
}

}  // namespace executorch::runtime
