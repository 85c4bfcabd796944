// The kernels that a program is opened with, which the caller gives.
#pragma once

#include "rushlight/c_api/entry.h"

namespace rushlight::c_api {

// Checks that an array was given, and each of its pointers.
template <class T>
Status check_array(const T* const* items, uint32_t count, const char* name, const char* item,
                   Message* message) {
  if (count > 0) RL_TRY(check_given(items, name, message));
  for (uint32_t i = 0; i < count; ++i) RL_TRY(check_given(items[i], item, message));
  return {};
}

// Checks those that `options` names, rl_module_options or rl_llm_options.
template <class Options>
Status check_kernels(const Options& options, Message* message) {
  RL_TRY(check_array(options.kernels, options.n_kernels, "kernels", "a kernel", message));
  return check_array(options.kernel_libraries, options.n_kernel_libraries, "kernel_libraries",
                     "the path of a kernel library", message);
}

}  // namespace rushlight::c_api
