// A program file, its methods and their memory: rushlight::Module under ExecuTorch's name.
//
// The module has memory of its own, unless it is given some: then its methods are those of
// Program::load_method(), in that memory.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/device_memory_buffer.h>
#include <executorch/runtime/executor/program.h>

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#define ET_MODULE_NAMESPACE module

namespace executorch::extension {

using runtime::Kernel;
using runtime::LoadBackendOptionsMap;
using runtime::Method;
using runtime::MethodMeta;
using runtime::NamedDataMap;
using runtime::Program;

namespace module {

class Module {
 public:
  // How the file is read. Pages are never locked in memory: the last four are all Mmap.
  enum class LoadMode { File, Mmap, MmapUseMlock, MmapUseMlockIgnoreErrors, MmapUseMadvise };

  explicit Module(const std::string& file_path, LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);
  explicit Module(const std::string& file_path, const std::string& data_map_path,
                  LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);
  explicit Module(const std::string& file_path, std::vector<std::string> data_files,
                  LoadMode load_mode = LoadMode::File,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  bool share_memory_arenas = false);
  explicit Module(std::unique_ptr<runtime::DataLoader> data_loader,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr,
                  bool share_memory_arenas = false);
  explicit Module(std::shared_ptr<Program> program,
                  std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                  std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                  std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                  std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr,
                  bool share_memory_arenas = false);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  // Opens the program; the functions below do so where it is not open.
  ET_NODISCARD virtual runtime::Error load(
      Program::Verification verification = Program::Verification::Minimal);
  // With options, copied, for the backends of methods that are loaded later.
  ET_NODISCARD virtual runtime::Error load(
      const LoadBackendOptionsMap& backend_options,
      Program::Verification verification = Program::Verification::Minimal);
  const LoadBackendOptionsMap& backend_options() const;
  virtual bool is_loaded() const;
  // nullptr before load().
  std::shared_ptr<Program> program() const;
  runtime::Result<size_t> num_methods();
  runtime::Result<std::unordered_set<std::string>> method_names();

  // With arenas of the caller's, which must outlive the method, or the module's own. The tracer is
  // used instead of the module's.
  ET_NODISCARD runtime::Error load_method(const std::string& method_name,
                                          runtime::HierarchicalAllocator* planned_memory = nullptr,
                                          runtime::EventTracer* event_tracer = nullptr,
                                          const LoadBackendOptionsMap* backend_options = nullptr,
                                          std::vector<Kernel> kernel_registry = {});
  ET_DEPRECATED ET_NODISCARD runtime::Error load_method(const std::string& method_name,
                                                        runtime::EventTracer* event_tracer) {
    return load_method(method_name, nullptr, event_tracer);
  }
  bool unload_method(const std::string& method_name);
  bool is_method_loaded(const std::string& method_name) const;
  ET_DEPRECATED ET_NODISCARD runtime::Result<Method*> method(const std::string& method_name);
  runtime::Result<MethodMeta> method_meta(const std::string& method_name);
  ET_NODISCARD runtime::Error load_forward(runtime::HierarchicalAllocator* planned_memory = nullptr,
                                           runtime::EventTracer* event_tracer = nullptr,
                                           const LoadBackendOptionsMap* backend_options = nullptr,
                                           std::vector<Kernel> kernel_registry = {}) {
    return load_method("forward", planned_memory, event_tracer, backend_options,
                       std::move(kernel_registry));
  }
  bool unload_forward() { return unload_method("forward"); }

  // Runs a method. Tensors of the result are the method's: they are valid until its next run.
  ET_NODISCARD virtual runtime::Result<std::vector<runtime::EValue>> execute(
      const std::string& method_name, const std::vector<runtime::EValue>& input_values);
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> execute(
      const std::string& method_name, const runtime::EValue& input_value) {
    return execute(method_name, std::vector<runtime::EValue>{input_value});
  }
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> execute(
      const std::string& method_name) {
    return execute(method_name, std::vector<runtime::EValue>{});
  }
  // The first result alone.
  ET_NODISCARD runtime::Result<runtime::EValue> get(
      const std::string& method_name, const std::vector<runtime::EValue>& input_values) {
    ET_ASSIGN_OR_RETURN(outputs, execute(method_name, input_values));
    if (outputs.empty()) return runtime::Error::InvalidArgument;
    return outputs[0];
  }
  ET_NODISCARD runtime::Result<runtime::EValue> get(const std::string& method_name,
                                                    const runtime::EValue& input_value) {
    return get(method_name, std::vector<runtime::EValue>{input_value});
  }
  ET_NODISCARD runtime::Result<runtime::EValue> get(const std::string& method_name) {
    return get(method_name, std::vector<runtime::EValue>{});
  }
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> forward(
      const std::vector<runtime::EValue>& input_values) {
    return execute("forward", input_values);
  }
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> forward(
      const runtime::EValue& input_value) {
    return execute("forward", input_value);
  }
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> forward() {
    return execute("forward");
  }

  // Inputs and outputs one by one. Only tensors that the program does not plan can be set as
  // outputs.
  ET_NODISCARD runtime::Error set_input(const std::string& method_name,
                                        const runtime::EValue& input_value, size_t input_index);
  ET_NODISCARD runtime::Error set_input(const runtime::EValue& input_value, size_t input_index) {
    return set_input("forward", input_value, input_index);
  }
  ET_NODISCARD runtime::Error set_inputs(const std::string& method_name,
                                         const std::vector<runtime::EValue>& input_values);
  ET_NODISCARD runtime::Error set_inputs(const std::vector<runtime::EValue>& input_values) {
    return set_inputs("forward", input_values);
  }
  ET_NODISCARD runtime::Error set_output(const std::string& method_name,
                                         runtime::EValue output_value, size_t output_index = 0);
  ET_NODISCARD runtime::Error set_output(runtime::EValue output_value, size_t output_index = 0) {
    return set_output("forward", output_value, output_index);
  }
  ET_NODISCARD runtime::Error set_outputs(const std::string& method_name,
                                          const std::vector<runtime::EValue>& output_values);
  ET_NODISCARD runtime::Error set_outputs(const std::vector<runtime::EValue>& output_values) {
    return set_outputs("forward", output_values);
  }
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> get_outputs(
      const std::string& method_name);
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> get_outputs() {
    return get_outputs("forward");
  }
  ET_NODISCARD runtime::Result<runtime::EValue> get_output(const std::string& method_name,
                                                           size_t output_index = 0);
  ET_NODISCARD runtime::Result<runtime::EValue> get_output(size_t output_index = 0) {
    return get_output("forward", output_index);
  }
  runtime::EventTracer* event_tracer() const;

 protected:
  // A method, which is loaded unless it is.
  runtime::Result<Method*> loaded_method(const std::string& method_name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace module

using module::Module;

}  // namespace executorch::extension

namespace torch::executor {
using ::executorch::extension::Module;
}  // namespace torch::executor
