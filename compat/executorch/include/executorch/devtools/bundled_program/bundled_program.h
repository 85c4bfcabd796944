// Test cases of a bundled program (.bpte): a method takes a case's inputs, and its outputs are
// compared with those that are expected.
#pragma once

#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/executor/method.h>

#define BUNDLED_PROGRAM_NAMESPACE bundled_program

namespace executorch::bundled_program {

// The bytes of a bundled program. Functions that are not told how many there are trust that the
// file is whole.
using SerializedBundledProgram = const void;
using runtime::Method;

// Sets the inputs of case `testset_idx` of the method of this name. InvalidArgument if there is no
// such case, NotSupported for bytes that are no bundled program.
ET_NODISCARD runtime::Error load_bundled_input(Method& method,
                                               SerializedBundledProgram* bundled_program_ptr,
                                               size_t testset_idx);

// Over the elements of all outputs that are expected. Elements that are expected to be 0 have no
// relative error.
struct ErrorStats {
  runtime::Error status;
  double mean_abs_error;
  double max_abs_error;
  double mean_relative_error;
  double max_relative_error;
};
ET_NODISCARD ErrorStats compute_method_output_error_stats(
    Method& method, SerializedBundledProgram* bundled_program_ptr, size_t testset_idx);

// NotFound if an output departs by more than atol + rtol * |expected|: the log says which element.
ET_NODISCARD runtime::Error verify_method_outputs(Method& method,
                                                  SerializedBundledProgram* bundled_program_ptr,
                                                  size_t testset_idx, double rtol = 1e-5,
                                                  double atol = 1e-8);

// The program file inside, in place. NotSupported for bytes that are no bundled program.
ET_NODISCARD runtime::Error get_program_data(void* file_data, size_t file_data_len,
                                             const void** out_program_data,
                                             size_t* out_program_data_len);

bool is_bundled_program(void* file_data, size_t file_data_len);
ET_DEPRECATED inline bool is_bundled_program(void* file_data) {
  constexpr size_t kBytesOfHeader = 128;
  return is_bundled_program(file_data, kBytesOfHeader);
}

}  // namespace executorch::bundled_program

namespace torch::executor::bundled_program {

using serialized_bundled_program = ::executorch::bundled_program::SerializedBundledProgram;

ET_NODISCARD inline Error LoadBundledInput(Method& method, serialized_bundled_program* bytes,
                                           size_t testset_idx) {
  return ::executorch::bundled_program::load_bundled_input(method, bytes, testset_idx);
}
ET_NODISCARD inline Error VerifyResultWithBundledExpectedOutput(Method& method,
                                                                serialized_bundled_program* bytes,
                                                                size_t testset_idx,
                                                                double rtol = 1e-5,
                                                                double atol = 1e-8) {
  return ::executorch::bundled_program::verify_method_outputs(method, bytes, testset_idx, rtol,
                                                              atol);
}
ET_NODISCARD inline Error GetProgramData(void* file_data, size_t file_data_len,
                                         const void** out_program_data,
                                         size_t* out_program_data_len) {
  return ::executorch::bundled_program::get_program_data(file_data, file_data_len, out_program_data,
                                                         out_program_data_len);
}
inline bool IsBundledProgram(void* file_data) {
  constexpr size_t kBytesOfHeader = 128;
  return ::executorch::bundled_program::is_bundled_program(file_data, kBytesOfHeader);
}

}  // namespace torch::executor::bundled_program
