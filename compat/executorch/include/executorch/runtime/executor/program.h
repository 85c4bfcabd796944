// A program that was read and verified.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/executor/pte_data_map.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstdint>
#include <optional>

namespace executorch::runtime {

namespace internal {
struct LoadedProgram;
}  // namespace internal

class Program final {
 public:
  // Every program is verified whole, whichever of them is asked for.
  enum class Verification : uint8_t { Minimal, InternalConsistency };
  enum HeaderStatus { CompatibleVersion, IncompatibleVersion, NotPresent, ShortData };
  static constexpr uint32_t kMaxSupportedSchemaVersion = 0;
  static constexpr size_t kMinHeadBytes = 64;

  // Reads the whole image by one call of the loader, which must outlive the program.
  ET_NODISCARD static Result<Program> load(DataLoader* loader,
                                           Verification verification = Verification::Minimal);
  ET_DEPRECATED ET_NODISCARD static Result<Program> Load(
      DataLoader* loader, Verification verification = Verification::Minimal) {
    return load(loader, verification);
  }
  Program(Program&& other) noexcept : loaded_(other.loaded_) { other.loaded_ = nullptr; }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program& operator=(Program&&) = delete;
  ~Program();

  // Constant `index`, counted from 1; NotFound, or InvalidArgument if it has fewer bytes.
  Result<const void*> get_constant_buffer_data(size_t index, size_t nbytes) const;
  // NotFound if the program has no named data.
  Result<const NamedDataMap*> get_named_data_map() const;
  size_t num_methods() const;
  Result<const char*> get_method_name(size_t index) const;
  // The memory, the tracer, the data and the options must outlive the method. Kernels of
  // `kernel_registry` come before those that are registered.
  Result<Method> load_method(const char* method_name, MemoryManager* memory_manager,
                             EventTracer* event_tracer = nullptr,
                             const NamedDataMap* named_data_map = nullptr,
                             const LoadBackendOptionsMap* backend_options = nullptr,
                             Span<const Kernel> kernel_registry = {}) const;
  Result<MethodMeta> method_meta(const char* method_name) const;
  static HeaderStatus check_header(const void* data, size_t size);
  // The bytes that were loaded.
  Span<const uint8_t> rushlight_image() const;

 private:
  explicit Program(internal::LoadedProgram* loaded) : loaded_(loaded) {}

  internal::LoadedProgram* loaded_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Program;
}  // namespace torch::executor
