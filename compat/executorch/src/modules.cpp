// Module: programs, methods and memory of rushlight::Module.
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/platform/runtime.h>

#include <optional>
#include <unordered_map>

#include "backends.h"
#include "kernels.h"
#include "methods.h"
#include "rushlight/module/module.h"
#include "thread_count.h"

namespace executorch::extension::module {
namespace {

using runtime::Error;
using runtime::EValue;
using runtime::Result;

// A method of a Module.
struct HeldMethod {
  virtual ~HeldMethod() = default;
  virtual Method& get() = 0;
};

// A method of a rushlight::Module, which owns it.
struct ModuleMethod final : public runtime::internal::LoadedMethod, public HeldMethod {
  explicit ModuleMethod(::rushlight::Method* of, runtime::EventTracer* event_tracer)
      : view_memory(of->n_inputs() + of->n_outputs()), events(event_tracer), face(this) {
    method = of;
    tracer = event_tracer;
    set_views(view_memory.data());
  }
  void destroy() override {}
  Method& get() override { return face; }

  std::vector<View> view_memory;
  runtime::internal::TracerOfEvents events;
  Method face;
};

// Buffers for what a program plans.
struct Arenas {
  Error allocate(const MethodMeta& meta) {
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      ET_ASSIGN_OR_RETURN(bytes, meta.memory_planned_buffer_size(i));
      grow(i, static_cast<size_t>(bytes));
    }
    return Error::Ok;
  }
  void grow(size_t index, size_t bytes) {
    if (index >= buffers.size()) buffers.resize(index + 1);
    if (buffers[index].size() < bytes) buffers[index].resize(bytes);
  }
  runtime::Span<runtime::Span<uint8_t>> all() {
    spans.clear();
    for (std::vector<uint8_t>& buffer : buffers) spans.push_back({buffer.data(), buffer.size()});
    return {spans.data(), spans.size()};
  }

  std::vector<std::vector<uint8_t>> buffers;
  std::vector<runtime::Span<uint8_t>> spans;
};

// A method in memory of the caller's.
struct GivenMethod final : public HeldMethod {
  Method& get() override { return *method; }

  Arenas arenas;  // unless others are given
  std::optional<runtime::HierarchicalAllocator> planned;
  std::optional<runtime::MemoryManager> memory;
  std::optional<Method> method;  // destroyed first
};

// Kernels that were given with a method.
struct GivenKernels {
  explicit GivenKernels(std::vector<Kernel> given)
      : kernels(std::move(given)), adopted(new runtime::internal::AdoptedKernel[kernels.size()]) {}

  std::vector<Kernel> kernels;
  std::unique_ptr<runtime::internal::AdoptedKernel[]> adopted;
};

}  // namespace

struct Module::Impl {
  // Methods are destroyed before what they point to.
  ~Impl() {
    for (const auto& method : methods) own.unload(method.first.c_str());
  }

  Error open();
  Error open_bytes(runtime::Span<const uint8_t> bytes);
  Error add_data();
  Error open_with_data();
  bool has_memory() const {
    return memory_allocator != nullptr || temp_allocator != nullptr || shares_arenas;
  }
  Error load_method(const std::string& name, runtime::HierarchicalAllocator* planned,
                    runtime::EventTracer* event_tracer, const LoadBackendOptionsMap* options,
                    std::vector<Kernel> kernels);
  Error load_own(const std::string& name, runtime::EventTracer* event_tracer,
                 std::vector<Kernel> kernels);
  Error load_given(const std::string& name, runtime::HierarchicalAllocator* planned,
                   runtime::EventTracer* event_tracer, std::vector<Kernel> kernels);
  Error share_arenas();
  Error set_options(const LoadBackendOptionsMap& map);
  Error use_kernels(std::vector<Kernel> kernels);
  Error failed(Error error) {
    if (error != Error::Ok) ET_LOG(Error, "%s", own.message().text());
    return error;
  }
  static Result<runtime::FreeableBuffer> read(runtime::DataLoader& from) {
    ET_ASSIGN_OR_RETURN(size, from.size());
    return from.load(
        0, size, runtime::DataLoader::SegmentInfo(runtime::DataLoader::SegmentInfo::Type::Program));
  }

  std::string file_path;
  std::vector<std::string> data_files;
  LoadMode load_mode = LoadMode::File;
  std::unique_ptr<runtime::DataLoader> loader;
  std::unique_ptr<runtime::DataLoader> data_loader;
  std::shared_ptr<Program> given_program;
  std::unique_ptr<runtime::MemoryAllocator> memory_allocator;
  std::unique_ptr<runtime::MemoryAllocator> temp_allocator;
  bool shares_arenas = false;
  std::unique_ptr<runtime::EventTracer> tracer;
  MallocMemoryAllocator default_allocator;  // where only others are given
  Arenas shared_arenas;

  std::vector<std::unique_ptr<runtime::FreeableBuffer>> images;
  std::unique_ptr<BufferDataLoader> program_loader;
  std::shared_ptr<Program> program;
  LoadBackendOptionsMap options;
  std::vector<std::vector<runtime::BackendOption>> option_memory;
  std::vector<::rushlight::BackendOption> own_options;
  ::rushlight::BackendOptionsMap own_option_map;
  std::vector<std::unique_ptr<GivenKernels>> given_kernels;
  ::rushlight::KernelTable kernels;
  runtime::internal::TracerOfEvents events;
  ::rushlight::Module own;
  std::unique_ptr<runtime::internal::PteDataMap> data;  // of data files
  std::unordered_map<std::string, std::unique_ptr<HeldMethod>> methods;
};

Error Module::Impl::open_bytes(runtime::Span<const uint8_t> bytes) {
  ::rushlight::ModuleOptions with;
  with.threads = threadpool::internal::asked_threads();
  with.map = load_mode != LoadMode::File;
  with.kernels = &kernels;
  with.backends = &runtime::internal::registered_backends();
  with.backend_options = &own_option_map;
  events = runtime::internal::TracerOfEvents(tracer.get());
  with.tracer = events.rushlight();
  const ::rushlight::Status status = bytes.data() != nullptr
                                         ? own.open_memory(bytes.data(), bytes.size(), with)
                                         : own.open(file_path.c_str(), with);
  return failed(status.code());
}

Error Module::Impl::add_data() {
  for (const std::string& path : data_files) {
    ET_CHECK_OK_OR_RETURN_ERROR(failed(own.add_data(path.c_str()).code()));
  }
  if (data_loader == nullptr) return Error::Ok;
  ET_ASSIGN_OR_RETURN(image, read(*data_loader));
  images.push_back(std::make_unique<runtime::FreeableBuffer>(std::move(image)));
  return failed(own.add_data_memory(images.back()->data(), images.back()->size()).code());
}

Error Module::Impl::open_with_data() {
  runtime::Span<const uint8_t> bytes;
  if (given_program != nullptr) bytes = given_program->rushlight_image();
  if (loader != nullptr) {
    ET_ASSIGN_OR_RETURN(image, read(*loader));
    images.push_back(std::make_unique<runtime::FreeableBuffer>(std::move(image)));
    bytes = {static_cast<const uint8_t*>(images.back()->data()), images.back()->size()};
  }
  ET_CHECK_OK_OR_RETURN_ERROR(open_bytes(bytes));
  return add_data();
}

Error Module::Impl::open() {
  if (program != nullptr) return Error::Ok;
  ET_CHECK_OK_OR_RETURN_ERROR(open_with_data());
  if (given_program != nullptr) {
    program = given_program;
    return Error::Ok;
  }
  const ::rushlight::Span<const uint8_t> image = own.program().image();
  program_loader = std::make_unique<BufferDataLoader>(image.data(), image.size());
  ET_ASSIGN_OR_RETURN(loaded, Program::load(program_loader.get()));
  program = std::make_shared<Program>(std::move(loaded));
  return Error::Ok;
}

Error Module::Impl::set_options(const LoadBackendOptionsMap& map) {
  LoadBackendOptionsMap copy;
  std::vector<std::vector<runtime::BackendOption>> memory;
  memory.reserve(map.size());
  for (size_t i = 0; i < map.size(); ++i) {
    const auto entry = map.entry_at(i);
    memory.emplace_back(entry.options.begin(), entry.options.end());
    ET_CHECK_OK_OR_RETURN_ERROR(
        copy.set_options(entry.backend_id, {memory.back().data(), memory.back().size()}));
  }
  std::vector<::rushlight::BackendOption> translated(runtime::internal::count_options(copy));
  ::rushlight::BackendOptionsMap own_map;
  ET_CHECK_OK_OR_RETURN_ERROR(
      runtime::internal::translate_options(copy, translated.data(), own_map));
  option_memory = std::move(memory);
  own_options = std::move(translated);
  own_option_map = own_map;
  options = copy;
  return Error::Ok;
}

// The table that the next method is loaded with.
Error Module::Impl::use_kernels(std::vector<Kernel> given) {
  if (given.empty()) {
    kernels = runtime::internal::registered_table();
    return Error::Ok;
  }
  given_kernels.push_back(std::make_unique<GivenKernels>(std::move(given)));
  GivenKernels& last = *given_kernels.back();
  kernels = {};
  return runtime::internal::fill_table({last.kernels.data(), last.kernels.size()},
                                       last.adopted.get(), kernels);
}

Error Module::Impl::load_method(const std::string& name, runtime::HierarchicalAllocator* planned,
                                runtime::EventTracer* event_tracer,
                                const LoadBackendOptionsMap* with,
                                std::vector<Kernel> method_kernels) {
  if (methods.count(name) != 0) return Error::Ok;
  if (with != nullptr) ET_CHECK_OK_OR_RETURN_ERROR(set_options(*with));
  return planned != nullptr || has_memory()
             ? load_given(name, planned, event_tracer, std::move(method_kernels))
             : load_own(name, event_tracer, std::move(method_kernels));
}

Error Module::Impl::load_own(const std::string& name, runtime::EventTracer* event_tracer,
                             std::vector<Kernel> method_kernels) {
  ET_CHECK_OK_OR_RETURN_ERROR(use_kernels(std::move(method_kernels)));
  ::rushlight::Result<::rushlight::Method*> method = own.method(name.c_str());
  if (!method.ok()) return failed(method.status().code());
  runtime::EventTracer* told = event_tracer != nullptr ? event_tracer : tracer.get();
  auto loaded = std::make_unique<ModuleMethod>(method.value(), told);
  if (event_tracer != nullptr) method.value()->set_tracer(loaded->events.rushlight());
  methods.emplace(name, std::move(loaded));
  return Error::Ok;
}

// Makes arenas that are large enough for each method.
Error Module::Impl::share_arenas() {
  if (!shared_arenas.buffers.empty()) return Error::Ok;
  for (size_t i = 0; i < program->num_methods(); ++i) {
    ET_ASSIGN_OR_RETURN(name, program->get_method_name(i));
    ET_ASSIGN_OR_RETURN(meta, program->method_meta(name));
    ET_CHECK_OK_OR_RETURN_ERROR(shared_arenas.allocate(meta));
  }
  return Error::Ok;
}

Error Module::Impl::load_given(const std::string& name, runtime::HierarchicalAllocator* planned,
                               runtime::EventTracer* event_tracer,
                               std::vector<Kernel> method_kernels) {
  runtime::MemoryAllocator* const structures =
      memory_allocator != nullptr ? memory_allocator.get() : &default_allocator;
  auto held = std::make_unique<GivenMethod>();
  if (planned == nullptr) {
    ET_ASSIGN_OR_RETURN(meta, program->method_meta(name.c_str()));
    ET_CHECK_OK_OR_RETURN_ERROR(shares_arenas ? share_arenas() : held->arenas.allocate(meta));
    held->planned.emplace((shares_arenas ? shared_arenas : held->arenas).all());
    planned = &*held->planned;
  }
  held->memory.emplace(structures, planned, temp_allocator.get());
  if (own.external_data() != nullptr && data == nullptr) {
    data = std::make_unique<runtime::internal::PteDataMap>(own.external_data());
  }
  runtime::Span<const Kernel> kernel_span;
  if (!method_kernels.empty()) {
    given_kernels.push_back(std::make_unique<GivenKernels>(std::move(method_kernels)));
    kernel_span = {given_kernels.back()->kernels.data(), given_kernels.back()->kernels.size()};
  }
  Result<Method> method = program->load_method(
      name.c_str(), &*held->memory, event_tracer != nullptr ? event_tracer : tracer.get(),
      data.get(), options.size() > 0 ? &options : nullptr, kernel_span);
  if (!method.ok()) return method.error();
  held->method.emplace(std::move(*method));
  methods.emplace(name, std::move(held));
  return Error::Ok;
}

Module::Module(const std::string& file_path, LoadMode load_mode,
               std::unique_ptr<runtime::EventTracer> event_tracer,
               std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
               std::unique_ptr<runtime::MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : Module(file_path, std::vector<std::string>{}, load_mode, std::move(event_tracer),
             std::move(memory_allocator), std::move(temp_allocator), share_memory_arenas) {}

Module::Module(const std::string& file_path, const std::string& data_map_path, LoadMode load_mode,
               std::unique_ptr<runtime::EventTracer> event_tracer,
               std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
               std::unique_ptr<runtime::MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : Module(file_path,
             data_map_path.empty() ? std::vector<std::string>{}
                                   : std::vector<std::string>{data_map_path},
             load_mode, std::move(event_tracer), std::move(memory_allocator),
             std::move(temp_allocator), share_memory_arenas) {}

Module::Module(const std::string& file_path, std::vector<std::string> data_files,
               LoadMode load_mode, std::unique_ptr<runtime::EventTracer> event_tracer,
               std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
               std::unique_ptr<runtime::MemoryAllocator> temp_allocator, bool share_memory_arenas)
    : impl_(std::make_unique<Impl>()) {
  runtime::runtime_init();
  impl_->file_path = file_path;
  impl_->data_files = std::move(data_files);
  impl_->load_mode = load_mode;
  impl_->tracer = std::move(event_tracer);
  impl_->memory_allocator = std::move(memory_allocator);
  impl_->temp_allocator = std::move(temp_allocator);
  impl_->shares_arenas = share_memory_arenas;
}

Module::Module(std::unique_ptr<runtime::DataLoader> data_loader,
               std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
               std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
               std::unique_ptr<runtime::EventTracer> event_tracer,
               std::unique_ptr<runtime::DataLoader> data_map_loader, bool share_memory_arenas)
    : Module(std::string(), LoadMode::File, std::move(event_tracer), std::move(memory_allocator),
             std::move(temp_allocator), share_memory_arenas) {
  impl_->loader = std::move(data_loader);
  impl_->data_loader = std::move(data_map_loader);
}

Module::Module(std::shared_ptr<Program> program,
               std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
               std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
               std::unique_ptr<runtime::EventTracer> event_tracer,
               std::unique_ptr<runtime::DataLoader> data_map_loader, bool share_memory_arenas)
    : Module(std::string(), LoadMode::File, std::move(event_tracer), std::move(memory_allocator),
             std::move(temp_allocator), share_memory_arenas) {
  impl_->given_program = std::move(program);
  impl_->data_loader = std::move(data_map_loader);
}

Module::~Module() = default;

Error Module::load(Program::Verification) { return impl_->open(); }

Error Module::load(const LoadBackendOptionsMap& backend_options,
                   Program::Verification verification) {
  ET_CHECK_OK_OR_RETURN_ERROR(impl_->set_options(backend_options));
  return load(verification);
}

const LoadBackendOptionsMap& Module::backend_options() const { return impl_->options; }

bool Module::is_loaded() const { return impl_->program != nullptr; }

std::shared_ptr<Program> Module::program() const { return impl_->program; }

runtime::EventTracer* Module::event_tracer() const { return impl_->tracer.get(); }

Result<size_t> Module::num_methods() {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  return impl_->program->num_methods();
}

Result<std::unordered_set<std::string>> Module::method_names() {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < impl_->program->num_methods(); ++i) {
    names.insert(*impl_->program->get_method_name(i));
  }
  return names;
}

Error Module::load_method(const std::string& method_name,
                          runtime::HierarchicalAllocator* planned_memory,
                          runtime::EventTracer* event_tracer,
                          const LoadBackendOptionsMap* backend_options,
                          std::vector<Kernel> kernel_registry) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  return impl_->load_method(method_name, planned_memory, event_tracer, backend_options,
                            std::move(kernel_registry));
}

bool Module::unload_method(const std::string& method_name) {
  if (impl_->methods.erase(method_name) == 0) return false;
  impl_->own.unload(method_name.c_str());
  return true;
}

bool Module::is_method_loaded(const std::string& method_name) const {
  return impl_->methods.count(method_name) != 0;
}

Result<Method*> Module::method(const std::string& method_name) {
  return loaded_method(method_name);
}

Result<Method*> Module::loaded_method(const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  return &impl_->methods.at(method_name)->get();
}

Result<MethodMeta> Module::method_meta(const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(load());
  return impl_->program->method_meta(method_name.c_str());
}

Result<std::vector<EValue>> Module::execute(const std::string& method_name,
                                            const std::vector<EValue>& input_values) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  Method& method = impl_->methods.at(method_name)->get();
  for (size_t i = 0; i < input_values.size(); ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(method.set_input(input_values[i], i));
  }
  ET_CHECK_OK_OR_RETURN_ERROR(method.execute());
  return get_outputs(method_name);
}

Error Module::set_input(const std::string& method_name, const EValue& input_value,
                        size_t input_index) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  return impl_->methods.at(method_name)->get().set_input(input_value, input_index);
}

Error Module::set_inputs(const std::string& method_name, const std::vector<EValue>& input_values) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  return impl_->methods.at(method_name)
      ->get()
      .set_inputs(aten::ArrayRef<EValue>(input_values.data(), input_values.size()));
}

Error Module::set_output(const std::string& method_name, EValue output_value, size_t output_index) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  ET_CHECK_OR_RETURN_ERROR(output_value.isTensor(), InvalidArgument, "output %zu is no tensor",
                           output_index);
  const aten::Tensor& tensor = output_value.toTensor();
  return impl_->methods.at(method_name)
      ->get()
      .set_output_data_ptr(tensor.mutable_data_ptr(), tensor.nbytes(), output_index);
}

Error Module::set_outputs(const std::string& method_name,
                          const std::vector<EValue>& output_values) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  const size_t count = impl_->methods.at(method_name)->get().outputs_size();
  ET_CHECK_OR_RETURN_ERROR(output_values.size() == count, InvalidArgument,
                           "%zu outputs are given, but the method has %zu", output_values.size(),
                           count);
  for (size_t i = 0; i < count; ++i) {
    ET_CHECK_OK_OR_RETURN_ERROR(set_output(method_name, output_values[i], i));
  }
  return Error::Ok;
}

Result<std::vector<EValue>> Module::get_outputs(const std::string& method_name) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_method(method_name));
  const Method& method = impl_->methods.at(method_name)->get();
  std::vector<EValue> outputs;
  outputs.reserve(method.outputs_size());
  for (size_t i = 0; i < method.outputs_size(); ++i) outputs.push_back(method.get_output(i));
  return outputs;
}

Result<EValue> Module::get_output(const std::string& method_name, size_t output_index) {
  ET_ASSIGN_OR_RETURN(outputs, get_outputs(method_name));
  ET_CHECK_OR_RETURN_ERROR(output_index < outputs.size(), InvalidArgument,
                           "there is no output %zu among %zu", output_index, outputs.size());
  return outputs[output_index];
}

}  // namespace executorch::extension::module
