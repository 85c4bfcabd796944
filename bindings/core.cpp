// The extension module `rushlight._core`: the C++ runtime as Python sees it. The functions here are
// thin and know nothing of contracts, structures or words for the user: `rushlight.runtime` is the
// face of it.
#include <nanobind/nanobind.h>

#include "arrays/lent.h"
#include "backends/backends.h"
#include "bindings.h"
#include "kernels/python_kernel.h"

namespace rushlight {
void bind_kernels(nanobind::module_& m);  // kernels.cpp
}

NB_MODULE(_core, m) {
  // The operating system frees objects that outlive the interpreter; nanobind need not warn.
  nanobind::set_leak_warnings(false);
  rushlight::python::init_log(m);
  rushlight::python::init_failure(m);
  rushlight::python::init_arrays(m);
  rushlight::python::init_lent(m);
  rushlight::python::init_kv_cache(m);
  rushlight::python::init_method(m);
  rushlight::python::init_program(m);
  rushlight::python::init_kernel_table(m);
  rushlight::python::init_backends(m);
  rushlight::python::init_peaks(m);
  rushlight::python::init_llm_options(m);
  rushlight::python::init_llm_runner(m);
  rushlight::python::init_llm_sampling(m);
  rushlight::python::init_tokenizer(m);
  rushlight::python::init_grammar(m);
  rushlight::python::init_llm_template(m);
  rushlight::python::init_llm_reply(m);
  rushlight::bind_kernels(m);
}
