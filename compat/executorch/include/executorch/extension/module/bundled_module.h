// A module of a bundled program (.bpte), which runs its test cases.
#pragma once

#include <executorch/extension/module/module.h>

#include <memory>
#include <string>
#include <vector>

namespace executorch::extension {

class BundledModule : public Module {
 public:
  // The bytes of a bundled program, which must outlive the module.
  explicit BundledModule(const void* bundled_program_ptr,
                         std::unique_ptr<runtime::MemoryAllocator> memory_allocator = nullptr,
                         std::unique_ptr<runtime::MemoryAllocator> temp_allocator = nullptr,
                         std::unique_ptr<runtime::EventTracer> event_tracer = nullptr,
                         std::unique_ptr<runtime::DataLoader> data_map_loader = nullptr);
  BundledModule(const BundledModule&) = delete;
  BundledModule& operator=(const BundledModule&) = delete;

  using Module::execute;
  // Runs a test case of the method.
  ET_NODISCARD runtime::Result<std::vector<runtime::EValue>> execute(const std::string& method_name,
                                                                     size_t testset_idx);
  // Compares the outputs of the last run with those that the case expects, as
  // bundled_program::verify_method_outputs() does.
  ET_NODISCARD runtime::Error verify_method_outputs(const std::string& method_name,
                                                    size_t testset_idx, double rtol = 1e-5,
                                                    double atol = 1e-8);

 private:
  const void* bundle_;
};

}  // namespace executorch::extension
