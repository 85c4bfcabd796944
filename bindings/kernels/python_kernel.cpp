#include "kernels/python_kernel.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays/arrays.h"
#include "arrays/call_loans.h"
#include "arrays/values.h"
#include "backends/exceptions.h"
#include "failure.h"
#include "gil.h"
#include "kernels/loaded_libraries.h"
#include "program/session.h"
#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/module/kernel_library.h"
#include "rushlight/module/module.h"
#include "rushlight/platform/platform.h"

namespace rushlight::python {

namespace {

// A function that gets the inputs and returns the results: an array, or a sequence of them.
class PythonKernel : public ForeignKernel {
 public:
  PythonKernel(std::string name, std::string signature, size_t n_results, nb::object function,
               bool may_be_in_delegates)
      : name_(std::move(name)),
        signature_(std::move(signature)),
        n_results_(n_results),
        function_(std::move(function)) {
    in_delegates = may_be_in_delegates;
    entry_ = {name_.c_str(), signature_.c_str(), run, nullptr, this};
    for (char letter : signature_) {
      if (letter != '?' && letter != '=') letters_.push_back(letter);
    }
  }
  const Kernel& kernel() const { return entry_; }

 private:
  static Status run(KernelContext& ctx, EValue* const* args);

  nb::object argument(CallLoans& loans, size_t k, const EValue& value) const;
  void call(KernelContext& ctx, EValue* const* args, CallLoans& loans) const;
  void store(KernelContext& ctx, nb::handle result, Tensor& out, size_t k) const;

  std::string name_;
  std::string signature_;
  std::string letters_;  // one for each argument
  size_t n_results_;     // the last arguments, or the items of the last one
  nb::object function_;
  Kernel entry_;
};

[[noreturn]] void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

nb::object PythonKernel::argument(CallLoans& loans, size_t k, const EValue& value) const {
  const bool writable = letters_[k] == 'w' || letters_[k] == 'W';
  const auto lend = [&](const Tensor& tensor) {
    if (writable && tensor.read_only) {
      refuse(name_of_argument(k) + " is written, and is a constant of the program");
    }
    return loans.lend(name_of_argument(k), tensor, writable);
  };
  if (value.is_tensor()) return lend(value.tensor());
  if (value.tag != Tag::TensorList && value.tag != Tag::OptionalTensorList) {
    return to_python(value, false);
  }
  nb::list items;
  for (size_t i = 0; i < value.size(); ++i) {
    const Tensor* tensor = value.tensor_at(i);
    items.append(tensor == nullptr ? nb::none() : lend(*tensor));
  }
  return items;
}

// Copies a result into the tensor that the program has for it.
void PythonKernel::store(KernelContext& ctx, nb::handle result, Tensor& out, size_t k) const {
  ArrayRef array;
  std::string why;
  const Borrowed borrowed = array.borrow(result.ptr(), &why);
  const std::string which = "result " + std::to_string(k);
  if (borrowed == Borrowed::NotAnArray) {
    refuse(which + " is " + Py_TYPE(result.ptr())->tp_name + "; the kernel must return an array");
  }
  if (borrowed != Borrowed::Yes) refuse(which + ": " + why);
  const Layout& layout = array.layout();
  if (layout.dtype != out.dtype) {
    refuse(which + " is " + dtype_name(layout.dtype) + ", and the program has " +
           dtype_name(out.dtype) + " there: convert it");
  }
  const Status status = ctx.resize(out, layout.shape());
  if (!status.ok()) fail(status.code(), which + ": " + ctx.message().text());
  copy_elements(layout, layout_of(out));
}

void PythonKernel::call(KernelContext& ctx, EValue* const* args, CallLoans& loans) const {
  const bool listed = letters_.back() == 'W' && n_results_ > 0;
  const size_t n_inputs = letters_.size() - (listed ? 1 : n_results_);
  const size_t n_results = listed ? args[n_inputs]->size() : n_results_;
  std::vector<nb::object> inputs;
  std::vector<PyObject*> pointers = {nullptr};
  for (size_t k = 0; k < n_inputs; ++k) {
    inputs.push_back(argument(loans, k, *args[k]));
    pointers.push_back(inputs.back().ptr());
  }
  const nb::object result = call_python(function_, pointers.data(), n_inputs);
  const auto out = [&](size_t k) -> Tensor& {
    return listed ? *args[n_inputs]->tensor_at(k) : args[n_inputs + k]->tensor();
  };
  if (n_results_ == 1 && !listed) return store(ctx, result, out(0), 0);
  if (n_results == 0) {
    if (!result.is_none()) refuse("the kernel must return None, since it has no results");
    return;
  }
  const bool fits =
      (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) && nb::len(result) == n_results;
  if (!fits) refuse("the kernel must return a tuple of " + std::to_string(n_results) + " arrays");
  for (size_t k = 0; k < n_results; ++k) store(ctx, nb::object(result[k]), out(k), k);
}

Status PythonKernel::run(KernelContext& ctx, EValue* const* args) {
  const auto& self = *static_cast<const PythonKernel*>(ctx.kernel()->self);
  const GilAcquire locked;
  Session* session = SessionLock::innermost();
  if (session == nullptr) {  // what is lent to it is held by a session
    return ctx.fail(Code::NotSupported,
                    "a kernel in Python runs in modules alone, not in the runner of language "
                    "models: write it in C++");
  }
  CallLoans loans;
  Status status = guarded(ctx.message(), [&] { self.call(ctx, args, loans); });
  std::vector<Loan> kept = loans.take_kept(self.name_);
  if (!kept.empty() && status.ok()) {
    status = ctx.fail(Code::InvalidState,
                      "it kept %s, which is lent to it for the call alone, and is read-only from "
                      "now on: keep a copy (%s.copy()) instead",
                      kept[0].what.c_str(), kept[0].what.c_str());
  }
  for (Loan& loan : kept) session->lend(std::move(loan));
  return status;
}

// Never destroyed: see kernel_table().
struct Owned {
  std::vector<PythonKernel*> python;
  std::vector<KernelLibrary*> libraries;
  std::vector<std::string> refused;  // why kernels of loaded libraries are not in the table
};

Owned& owned() {
  static auto* all = new Owned;
  return *all;
}

void register_function(const std::string& name, const std::string& signature, size_t n_results,
                       nb::object function, bool in_delegates) {
  auto kernel =
      std::make_unique<PythonKernel>(name, signature, n_results, std::move(function), in_delegates);
  const Status status = kernel_table().add({&kernel->kernel(), 1});
  if (!status.ok()) {
    fail(status.code(), status.code() == Code::RegistrationExceedingMaxKernels
                            ? "the table of kernels is full"
                            : "there is a kernel of " + name + " already");
  }
  owned().python.push_back(kernel.release());
}

// Returns the library's number, and the names of its kernels.
nb::tuple register_library(nb::bytes path) {
  auto library = std::make_unique<KernelLibrary>();
  Message message;
  Status status = library->open(path.c_str(), message);
  if (status.ok()) status = library->add_to(kernel_table(), message);
  if (!status.ok()) fail(status.code(), message);
  std::vector<std::string> names;
  for (size_t i = 0; i < library->size(); ++i) names.emplace_back(library->kernel(i).name);
  owned().libraries.push_back(library.release());
  return nb::make_tuple(owned().libraries.size() - 1, names);
}

// Takes out what a library added: not what it shares with one that was registered before.
void unregister_library(size_t number) {
  owned().libraries.at(number)->remove_from(kernel_table());
}

bool unregister(const std::string& name) {
  std::vector<const Kernel*> matches;
  const KernelTable& table = kernel_table();
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].self != nullptr && name == table[i].name) matches.push_back(&table[i]);
  }
  for (const Kernel* kernel : matches) kernel_table().remove({kernel, 1});
  return !matches.empty();
}

nb::set names(bool own) {
  nb::set all;
  const KernelTable& table = kernel_table();
  for (size_t i = 0; i < table.size(); ++i) {
    if (!own || table[i].self != nullptr) all.add(nb::str(table[i].name));
  }
  return all;
}

// The operators whose kernels, for whatever dtypes, may all be called inside a delegate.
nb::set names_in_delegates() {
  nb::set all = names(true);
  const KernelTable& table = kernel_table();
  for (size_t i = 0; i < table.size(); ++i) {
    const ForeignKernel* self = table[i].self;
    if (self != nullptr && !self->in_delegates) all.discard(nb::str(table[i].name));
  }
  return all;
}

// Libraries whose kernels serve the whole process as soon as it has loaded them.
void add_loaded_libraries(KernelTable& table) {
  for (const std::string& path : new_libraries_with(RL_KERNEL_V1_LOADED_SYMBOL)) {
    auto library = std::make_unique<KernelLibrary>();
    Message message;
    Status status = library->open(path.c_str(), message, RL_KERNEL_V1_LOADED_SYMBOL);
    if (status.code() == Code::NotFound) continue;  // it has the function, but no kernels
    if (status.ok()) {
      status = library->add_to(table, message);
      if (!status.ok()) message.prepend("%s: ", path.c_str());
    }
    if (status.ok()) {
      owned().libraries.push_back(library.release());
      continue;
    }
    owned().refused.emplace_back(message.text());
    const std::string line =
        "kernels of a library that is loaded are left out: " + owned().refused.back();
    log_line(LogLevel::Warning, line.c_str(), line.size());
  }
}

}  // namespace

KernelTable& kernel_table() {
  static KernelTable table = default_kernels() != nullptr ? *default_kernels() : KernelTable();
  add_loaded_libraries(table);
  return table;
}

void init_kernel_table(nb::module_& m) {
  m.def("operator_names", names, nb::arg("own") = false);
  m.def("register_kernel", register_function, nb::arg("name"), nb::arg("signature"),
        nb::arg("n_results"), nb::arg("function"), nb::arg("in_delegates"));
  m.def("register_kernel_library", register_library, nb::arg("path"));
  m.def("unregister_kernel", unregister, nb::arg("name"));
  m.def("unregister_kernel_library", unregister_library, nb::arg("number"));
  m.def("kernels_in_delegates", names_in_delegates);
  m.def("refused_kernel_libraries", [] { return owned().refused; });
}

}  // namespace rushlight::python
