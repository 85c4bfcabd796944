// Test cases of bundled programs.
#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/module/bundled_module.h>
#include <executorch/runtime/core/event_tracer_hooks.h>

#include <cinttypes>
#include <cmath>

#include "rushlight/events/tracer.h"
#include "rushlight/method/bundled_test.h"
#include "rushlight/program/bundle.h"

namespace executorch::bundled_program {
namespace {

using runtime::Error;
using runtime::Result;

// The most bytes that such a file can have: its offsets have 31 bits.
constexpr size_t kMostBytes = 0x7fffffff;

// A file that is not told how long it is.
Result<::rushlight::Bundle> open(SerializedBundledProgram* file) {
  const ::rushlight::Span<const uint8_t> bytes(static_cast<const uint8_t*>(file), kMostBytes);
  ET_CHECK_OR_RETURN_ERROR(file != nullptr && ::rushlight::Bundle::is_bundle(bytes), NotSupported,
                           "the bytes are no bundled program: their identifier is missing");
  ::rushlight::Message message;
  ::rushlight::Bundle bundle;
  const Error error = bundle.load(bytes, message).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", message.text());
  return bundle;
}

Result<::rushlight::BundledCase> find(const Method& method, SerializedBundledProgram* file,
                                      size_t index) {
  ET_ASSIGN_OR_RETURN(bundle, open(file));
  ::rushlight::Message message;
  const ::rushlight::Result<::rushlight::BundledCase> found =
      bundle.find(method.method_meta().name(), index, message);
  ET_CHECK_OK_OR_RETURN_ERROR(found.status().code(), "%s", message.text());
  return found.value();
}

// The errors of elements, one after the other.
class Errors {
 public:
  template <typename T>
  void add(const aten::Tensor& got, const ::rushlight::Tensor& expected) {
    const auto* wanted = static_cast<const T*>(expected.data);
    for (ssize_t i = 0; i < got.numel(); ++i) {
      add(static_cast<double>(got.const_data_ptr<T>()[i]), static_cast<double>(wanted[i]));
    }
  }
  void add(double got, double expected) {
    const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
    const double size = same ? 0.0 : std::fabs(got - expected);
    ++count_;
    sum_ += size;
    most_ = std::fmax(most_, size);
    if (expected == 0.0) return;
    ++relative_count_;
    relative_sum_ += size / std::fabs(expected);
    most_relative_ = std::fmax(most_relative_, size / std::fabs(expected));
  }
  ErrorStats stats() const {
    return {Error::Ok, mean(sum_, count_), most_, mean(relative_sum_, relative_count_),
            most_relative_};
  }

 private:
  static double mean(double sum, size_t count) {
    return count > 0 ? sum / static_cast<double>(count) : 0.0;
  }

  size_t count_ = 0, relative_count_ = 0;
  double sum_ = 0, most_ = 0, relative_sum_ = 0, most_relative_ = 0;
};

Error add_tensor(const aten::Tensor& got, const ::rushlight::Tensor& expected, size_t output,
                 Errors& errors) {
  ET_CHECK_OR_RETURN_ERROR(
      static_cast<int>(got.scalar_type()) == static_cast<int>(expected.dtype) &&
          got.numel() == static_cast<ssize_t>(expected.numel),
      InvalidArgument, "output %zu is not of the type and size that are expected", output);
  switch (got.scalar_type()) {
#define ET_ADD_(ctype, name)          \
  case aten::ScalarType::name:        \
    errors.add<ctype>(got, expected); \
    return Error::Ok;
    ET_FORALL_REALHBBF16_TYPES(ET_ADD_)
#undef ET_ADD_
    default:
      ET_LOG(Error, "output %zu has elements of type %d, which are not compared", output,
             static_cast<int>(got.scalar_type()));
      return Error::NotSupported;
  }
}

Error add_value(const runtime::EValue& got, const ::rushlight::BundledValue& expected,
                size_t output, Errors& errors) {
  if (got.isTensor() && expected.tag == ::rushlight::Tag::Tensor) {
    return add_tensor(got.toTensor(), expected.tensor.tensor(), output, errors);
  }
  if (got.isDouble() && expected.tag == ::rushlight::Tag::Double) {
    errors.add(got.toDouble(), expected.d);
    return Error::Ok;
  }
  if (got.isInt() && expected.tag == ::rushlight::Tag::Int) {
    errors.add(static_cast<double>(got.toInt()), static_cast<double>(expected.i));
    return Error::Ok;
  }
  if (got.isBool() && expected.tag == ::rushlight::Tag::Bool) {
    errors.add(got.toBool() ? 1.0 : 0.0, static_cast<double>(expected.i));
    return Error::Ok;
  }
  ET_LOG(Error, "output %zu is not of the kind that is expected, or has no number", output);
  return Error::NotSupported;
}

Error add_outputs(const Method& method, const ::rushlight::BundledCase& test_case, Errors& errors) {
  ET_CHECK_OR_RETURN_ERROR(test_case.n_expected() == method.outputs_size(), InvalidArgument,
                           "the case expects %zu outputs, but the method has %zu",
                           test_case.n_expected(), method.outputs_size());
  for (size_t i = 0; i < method.outputs_size(); ++i) {
    ::rushlight::Message message;
    ::rushlight::BundledValue expected;
    const Error error = test_case.expected(i, &expected, message).code();
    ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", message.text());
    ET_CHECK_OK_OR_RETURN_ERROR(add_value(method.get_output(i), expected, i, errors));
  }
  return Error::Ok;
}

}  // namespace

Error load_bundled_input(Method& method, SerializedBundledProgram* bundled_program_ptr,
                         size_t testset_idx) {
  ET_ASSIGN_OR_RETURN(test_case, find(method, bundled_program_ptr, testset_idx));
  ::rushlight::Message message;
  const Error error = ::rushlight::set_case_inputs(method.rushlight(), test_case, message).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "case %zu: %s", testset_idx, message.text());
  runtime::EventTracer* tracer = method.get_event_tracer();
  const auto index = static_cast<int32_t>(testset_idx);
  runtime::internal::event_tracer_set_bundled_input_index(tracer, index);
  ::rushlight::Tracer* own = tracer != nullptr ? tracer->rushlight_tracer() : nullptr;
  if (own != nullptr) own->set_bundled_case(index);
  return Error::Ok;
}

ErrorStats compute_method_output_error_stats(Method& method,
                                             SerializedBundledProgram* bundled_program_ptr,
                                             size_t testset_idx) {
  const auto test_case = find(method, bundled_program_ptr, testset_idx);
  if (!test_case.ok()) return {test_case.error(), 0, 0, 0, 0};
  Errors errors;
  const Error error = add_outputs(method, *test_case, errors);
  return error == Error::Ok ? errors.stats() : ErrorStats{error, 0, 0, 0, 0};
}

Error verify_method_outputs(Method& method, SerializedBundledProgram* bundled_program_ptr,
                            size_t testset_idx, double rtol, double atol) {
  ET_ASSIGN_OR_RETURN(test_case, find(method, bundled_program_ptr, testset_idx));
  ET_CHECK_OR_RETURN_ERROR(rtol >= 0 && atol >= 0, InvalidArgument,
                           "rtol is %g and atol %g: neither may be negative", rtol, atol);
  ::rushlight::CaseReport report;
  const Error error =
      ::rushlight::compare_outputs(method.rushlight(), test_case, {rtol, atol}, report).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", report.message.text());
  ET_CHECK_OR_RETURN_ERROR(report.compared, NotSupported, "case %zu expects no outputs",
                           testset_idx);
  ET_CHECK_OR_RETURN_ERROR(report.passed, NotFound, "case %zu: %s", testset_idx,
                           report.message.text());
  return Error::Ok;
}

Error get_program_data(void* file_data, size_t file_data_len, const void** out_program_data,
                       size_t* out_program_data_len) {
  ET_CHECK_OR_RETURN_ERROR(is_bundled_program(file_data, file_data_len), NotSupported,
                           "the %zu bytes are no bundled program: their identifier is missing",
                           file_data_len);
  ::rushlight::Message message;
  ::rushlight::Bundle bundle;
  const Error error =
      bundle.load({static_cast<const uint8_t*>(file_data), file_data_len}, message).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", message.text());
  *out_program_data = bundle.program().data();
  *out_program_data_len = bundle.program().size();
  return Error::Ok;
}

bool is_bundled_program(void* file_data, size_t file_data_len) {
  return file_data != nullptr &&
         ::rushlight::Bundle::is_bundle({static_cast<const uint8_t*>(file_data), file_data_len});
}

// The program inside; bytes that are none become a loader of nothing, which no program is loaded
// from.
std::unique_ptr<runtime::DataLoader> loader_of(SerializedBundledProgram* file) {
  const Result<::rushlight::Bundle> bundle = open(file);
  const ::rushlight::Span<const uint8_t> program =
      bundle.ok() ? bundle->program() : ::rushlight::Span<const uint8_t>();
  return std::make_unique<extension::BufferDataLoader>(program.data(), program.size());
}

}  // namespace executorch::bundled_program

namespace executorch::extension {

BundledModule::BundledModule(const void* bundled_program_ptr,
                             std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
                             std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
                             std::unique_ptr<runtime::EventTracer> event_tracer,
                             std::unique_ptr<runtime::DataLoader> data_map_loader)
    : Module(bundled_program::loader_of(bundled_program_ptr), std::move(memory_allocator),
             std::move(temp_allocator), std::move(event_tracer), std::move(data_map_loader)),
      bundle_(bundled_program_ptr) {}

runtime::Result<std::vector<runtime::EValue>> BundledModule::execute(const std::string& method_name,
                                                                     size_t testset_idx) {
  ET_ASSIGN_OR_RETURN(loaded, loaded_method(method_name));
  ET_CHECK_OK_OR_RETURN_ERROR(bundled_program::load_bundled_input(*loaded, bundle_, testset_idx));
  ET_CHECK_OK_OR_RETURN_ERROR(loaded->execute());
  return get_outputs(method_name);
}

runtime::Error BundledModule::verify_method_outputs(const std::string& method_name,
                                                    size_t testset_idx, double rtol, double atol) {
  ET_ASSIGN_OR_RETURN(loaded, loaded_method(method_name));
  return bundled_program::verify_method_outputs(*loaded, bundle_, testset_idx, rtol, atol);
}

}  // namespace executorch::extension
