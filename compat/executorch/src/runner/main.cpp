// executor_runner: runs a method of a program from the command line, with ExecuTorch's flags.
#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/extension/threadpool/threadpool.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/clock.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "flags.h"
#include "outputs.h"

namespace runner {
namespace {

using namespace executorch::runtime;
using executorch::etdump::ETDumpGen;
using executorch::extension::BufferCleanup;
using executorch::extension::BufferDataLoader;
using executorch::extension::FileDataLoader;
using executorch::extension::FlatTensorDataMap;
using executorch::extension::MallocMemoryAllocator;

std::vector<std::string> parts_of(const std::string& list, char between) {
  std::vector<std::string> parts;
  std::stringstream stream(list + (list.empty() || list.back() != between ? "" : " "));
  for (std::string part; std::getline(stream, part, between);) {
    parts.push_back(part == " " ? "" : part);
  }
  return parts;
}

constexpr size_t kCase = 0;  // of a bundled program

// A program, its method, and all that they use.
class Run {
 public:
  explicit Run(const Flags& flags) : flags_(flags) {}

  Error load() {
    if (!flags_.data_path.empty()) ET_CHECK_OK_OR_RETURN_ERROR(load_data());
    const uint64_t start = pal_current_ticks();
    ET_CHECK_OK_OR_RETURN_ERROR(load_program());
    ET_CHECK_OK_OR_RETURN_ERROR(load_method());
    ET_LOG(Info, "%s: method %s loaded in %f ms", flags_.model_path.c_str(), name_.c_str(),
           milliseconds(pal_current_ticks() - start));
    return Error::Ok;
  }

  Error set_inputs() {
    if (is_bundled_) {
      return executorch::bundled_program::load_bundled_input(*method_, bundle_.data(), kCase);
    }
    std::vector<std::string> bytes;
    std::vector<std::pair<char*, size_t>> buffers;
    for (const std::string& path : parts_of(flags_.inputs, ',')) {
      std::ifstream file(path, std::ios::binary);
      std::stringstream content;
      content << file.rdbuf();
      if (!file) {
        ET_LOG(Error, "the input %s cannot be read", path.c_str());
        return Error::AccessFailed;
      }
      bytes.push_back(content.str());
    }
    for (std::string& one : bytes) buffers.emplace_back(&one[0], one.size());
    inputs_.reset();
    ET_ASSIGN_OR_RETURN(inputs,
                        executorch::extension::prepare_input_tensors(*method_, {}, buffers));
    inputs_.emplace(std::move(inputs));
    return flags_.input_shapes.empty() ? Error::Ok : resize_inputs();
  }

  Error execute(double* taken) {
    const uint64_t start = pal_current_ticks();
    const Error error = method_->execute();
    *taken = milliseconds(pal_current_ticks() - start);
    return error;
  }

  Error take_outputs(Values* outputs) {
    outputs->resize(method_->outputs_size());
    return method_->get_outputs(outputs->data(), outputs->size());
  }

  // Of the case whose inputs were set, if there is one.
  Error verify_outputs() {
    if (!is_bundled_) return Error::Ok;
    const auto stats = executorch::bundled_program::compute_method_output_error_stats(
        *method_, bundle_.data(), kCase);
    ET_LOG(Info, "errors: mean %g, greatest %g; relative: mean %g, greatest %g",
           stats.mean_abs_error, stats.max_abs_error, stats.mean_relative_error,
           stats.max_relative_error);
    const Error error = executorch::bundled_program::verify_method_outputs(
        *method_, bundle_.data(), kCase, flags_.bundleio_rtol, flags_.bundleio_atol);
    ET_LOG(Info, "TEST: BundleIO index[%zu] Test_result: %s", kCase,
           error == Error::Ok ? "PASS" : "FAIL");
    return error;
  }

  Error write_trace() {
    if (flags_.etdump_path.empty()) return Error::Ok;
    const executorch::etdump::ETDumpResult trace = tracer_.get_etdump_data();
    std::FILE* file = std::fopen(flags_.etdump_path.c_str(), "wb");
    const bool is_written =
        file != nullptr && std::fwrite(trace.buf, 1, trace.size, file) == trace.size;
    if (file != nullptr) std::fclose(file);
    std::free(trace.buf);
    if (is_written) return Error::Ok;
    ET_LOG(Error, "the trace cannot be written to %s", flags_.etdump_path.c_str());
    return Error::AccessFailed;
  }

 private:
  static double milliseconds(uint64_t ticks) {
    return static_cast<double>(ticks_to_ns(ticks)) / 1e6;
  }

  // A bundled program lies in memory whole, another one is read by its loader.
  Error load_program() {
    ET_ASSIGN_OR_RETURN(loader, FileDataLoader::from(flags_.model_path.c_str()));
    loader_.emplace(std::move(loader));
    constexpr size_t kHead = 128;
    const DataLoader::SegmentInfo info(DataLoader::SegmentInfo::Type::Program);
    ET_ASSIGN_OR_RETURN(size, loader_->size());
    ET_ASSIGN_OR_RETURN(head, loader_->load(0, std::min(size, kHead), info));
    is_bundled_ = executorch::bundled_program::is_bundled_program(const_cast<void*>(head.data()),
                                                                  head.size());
    DataLoader* from = &*loader_;
    if (is_bundled_) {
      ET_CHECK_OR_RETURN_ERROR(flags_.input_shapes.empty() && flags_.inputs.empty(),
                               InvalidArgument,
                               "%s has its own inputs: leave out --inputs and --input_shapes",
                               flags_.model_path.c_str());
      // The program inside must be aligned as the file says.
      bundle_.resize(size);
      ET_CHECK_OK_OR_RETURN_ERROR(loader_->load_into(0, size, info, bundle_.data()));
      const void* data = nullptr;
      size_t bytes = 0;
      ET_CHECK_OK_OR_RETURN_ERROR(
          executorch::bundled_program::get_program_data(bundle_.data(), size, &data, &bytes));
      bundled_loader_.emplace(data, bytes);
      from = &*bundled_loader_;
    }
    ET_ASSIGN_OR_RETURN(program, Program::load(from));
    program_.emplace(std::move(program));
    return Error::Ok;
  }

  Error load_data() {
    ET_ASSIGN_OR_RETURN(loader, FileDataLoader::from(flags_.data_path.c_str()));
    data_loader_.emplace(std::move(loader));
    ET_ASSIGN_OR_RETURN(data, FlatTensorDataMap::load(&*data_loader_));
    data_.emplace(std::move(data));
    return Error::Ok;
  }

  Error load_method() {
    name_ = flags_.method_name;
    if (name_.empty()) {
      ET_ASSIGN_OR_RETURN(first, program_->get_method_name(0));
      name_ = first;
    }
    ET_ASSIGN_OR_RETURN(meta, program_->method_meta(name_.c_str()));
    for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      ET_ASSIGN_OR_RETURN(bytes, meta.memory_planned_buffer_size(i));
      buffers_.emplace_back(new (std::nothrow) uint8_t[static_cast<size_t>(bytes)]);
      ET_CHECK_OR_RETURN_ERROR(buffers_.back() != nullptr, MemoryAllocationFailed,
                               "no memory for the %lld bytes of arena %zu",
                               static_cast<long long>(bytes), i);
      spans_.push_back({buffers_.back().get(), static_cast<size_t>(bytes)});
    }
    planned_.emplace(Span<Span<uint8_t>>(spans_.data(), spans_.size()));
    memory_.emplace(&structures_, &*planned_, &scratch_);
    EventTracer* const tracer = flags_.etdump_path.empty() ? nullptr : &tracer_;
    ET_ASSIGN_OR_RETURN(method, program_->load_method(name_.c_str(), &*memory_, tracer,
                                                      data_.has_value() ? &*data_ : nullptr));
    method_.emplace(std::move(method));
    return Error::Ok;
  }

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // of get_inputs()
#endif
  Error resize_inputs() {
    const std::vector<std::string> shapes = parts_of(flags_.input_shapes, ',');
    ET_CHECK_OR_RETURN_ERROR(shapes.size() == method_->inputs_size(), InvalidArgument,
                             "--input_shapes has %zu sizes, but the method has %zu inputs: leave "
                             "empty what stays as it is",
                             shapes.size(), method_->inputs_size());
    std::vector<EValue> inputs(shapes.size());
    ET_CHECK_OK_OR_RETURN_ERROR(method_->get_inputs(inputs.data(), inputs.size()));
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].empty()) continue;
      ET_CHECK_OR_RETURN_ERROR(inputs[i].isTensor(), InvalidArgument,
                               "input %zu is no tensor: leave its sizes in --input_shapes empty",
                               i);
      std::vector<executorch::aten::SizesType> sizes;
      for (const std::string& size : parts_of(shapes[i], 'x')) {
        sizes.push_back(std::atoi(size.c_str()));
      }
      ET_CHECK_OK_OR_RETURN_ERROR(resize_tensor(inputs[i].toTensor(), {sizes.data(), sizes.size()}),
                                  "input %zu cannot have the sizes %s", i, shapes[i].c_str());
    }
    return Error::Ok;
  }
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

  const Flags& flags_;
  ETDumpGen tracer_;
  std::optional<FileDataLoader> data_loader_;
  std::optional<FlatTensorDataMap> data_;
  std::optional<FileDataLoader> loader_;
  bool is_bundled_ = false;
  std::vector<uint8_t> bundle_;
  std::optional<BufferDataLoader> bundled_loader_;
  std::optional<Program> program_;
  std::string name_;
  std::vector<std::unique_ptr<uint8_t[]>> buffers_;
  std::vector<Span<uint8_t>> spans_;
  std::optional<HierarchicalAllocator> planned_;
  MallocMemoryAllocator structures_;
  MallocMemoryAllocator scratch_;
  std::optional<MemoryManager> memory_;
  std::optional<BufferCleanup> inputs_;
  std::optional<Method> method_;
};

Error serve(Run& run, const Flags& flags) {
  Values outputs;
  for (std::string line; std::getline(std::cin, line);) {
    double taken = 0;
    ET_CHECK_OK_OR_RETURN_ERROR(run.set_inputs());
    ET_CHECK_OK_OR_RETURN_ERROR(run.execute(&taken));
    ET_CHECK_OK_OR_RETURN_ERROR(run.take_outputs(&outputs));
    if (!write_outputs(outputs, flags.output_file)) return Error::AccessFailed;
    ET_LOG(Info, "SERVER MODE DONE");
  }
  return Error::Ok;
}

Error run_all(Run& run, const Flags& flags) {
  double total = 0;
  for (uint32_t i = 0; i < flags.num_executions; ++i) {
    double taken = 0;
    ET_CHECK_OK_OR_RETURN_ERROR(run.set_inputs());
    ET_CHECK_OK_OR_RETURN_ERROR(run.execute(&taken));
    ET_LOG(Info, "Iteration %u of %u: %f ms", i + 1, flags.num_executions, taken);
    total += taken;
  }
  ET_LOG(Info, "Model executed %u times in %f ms", flags.num_executions, total);
  Values outputs;
  ET_CHECK_OK_OR_RETURN_ERROR(run.take_outputs(&outputs));
  if (!flags.output_file.empty() && !write_outputs(outputs, flags.output_file)) {
    return Error::AccessFailed;
  }
  if (flags.print_output == "all") print_all(outputs);
  if (flags.print_output == "summary") print_summary(outputs);
  ET_CHECK_OK_OR_RETURN_ERROR(run.write_trace());
  return run.verify_outputs();
}

int main_of(int argc, char** argv) {
  Flags flags;
#ifdef ET_EVENT_TRACER_ENABLED
  flags.etdump_path = "model.etdump";
#endif
  int status = 0;
  if (!read_flags(argc, argv, flags, &status)) return status;
  if (flags.cpu_threads > 0) {
    executorch::extension::threadpool::get_threadpool()->_unsafe_reset_threadpool(
        static_cast<uint32_t>(flags.cpu_threads));
  }
  Run run(flags);
  Error error = run.load();
  if (error == Error::Ok) error = flags.server_mode ? serve(run, flags) : run_all(run, flags);
  if (error == Error::Ok) return 0;
  ET_LOG(Error, "%s: %s", flags.model_path.c_str(), to_string(error));
  return 1;
}

}  // namespace
}  // namespace runner

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  return runner::main_of(argc, argv);
}
