// The state of an opened program's methods, by its index in Module::state().
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "arrays/arrays.h"
#include "arrays/values.h"
#include "bindings.h"
#include "failure.h"
#include "program/meta.h"
#include "program/session.h"

namespace rushlight::python {

namespace {

[[noreturn]] void refuse(Module& module, Status status) { fail(status.code(), module.message()); }

Span<const StateEntry> entries_of(Module& module) {
  Result<Span<const StateEntry>> entries = module.state();
  if (!entries.ok()) refuse(module, entries.status());
  return entries.value();
}

// A tensor over the bytes of an entry.
class EntryTensor {
 public:
  EntryTensor(Module& module, size_t index) {
    const Span<const StateEntry> entries = entries_of(module);
    if (index >= entries.size()) throw nb::index_error("state index out of range");
    const StateEntry& entry = entries[index];
    meta_ = entry.tensor;
    tensor_.data = entry.data;
    tensor_.sizes = meta_.sizes;
    tensor_.strides = strides_;
    tensor_.dim_order = meta_.dim_order;
    tensor_.rank = meta_.rank;
    tensor_.dtype = meta_.dtype;
    if (!count_elements(meta_.shape(), &tensor_.numel) ||
        !strides_of(meta_.shape(), meta_.dim_order, strides_)) {
      fail(Code::NotSupported, "the sizes of this state are too large to be read");
    }
    tensor_.capacity = tensor_.numel;
  }
  EntryTensor(const EntryTensor&) = delete;
  EntryTensor& operator=(const EntryTensor&) = delete;
  const Tensor& tensor() const { return tensor_; }

 private:
  TensorMeta meta_;
  int32_t strides_[kMaxRank] = {};
  Tensor tensor_;
};

nb::list state(ProgramHandle& self) {
  Turn turn(*self.session);
  nb::list all;
  for (const StateEntry& entry : entries_of(self.session->module())) {
    nb::list sizes;
    for (int32_t size : entry.tensor.shape()) sizes.append(size);
    all.append(nb::make_tuple(to_str(entry.name), to_str(entry.method), entry.value,
                              dtype_name(entry.tensor.dtype), sizes));
  }
  return all;
}

nb::object read_state(ProgramHandle& self, size_t index, bool as_torch) {
  Turn turn(*self.session);
  self.session->check_state();
  const EntryTensor entry(self.session->module(), index);
  return as_torch ? new_torch(entry.tensor()) : new_numpy(entry.tensor());
}

void write_state(ProgramHandle& self, size_t index, const nb::object& array) {
  ArrayRef source;
  std::string why = "it is not an array";
  if (source.borrow(array.ptr(), &why) != Borrowed::Yes) fail(Code::InvalidType, why);
  Turn turn(*self.session);
  self.session->check_state();
  Module& module = self.session->module();
  for (size_t m = 0; m < module.program().n_methods(); ++m) {
    const StringView name = module.program().method_name(m);
    if (module.is_loaded(name) && module.method(name).value()->in_steps()) {
      fail(Code::InvalidState, "a method runs in steps: its state is settled when it is done");
    }
  }
  const EntryTensor entry(module, index);
  const Layout to = layout_of(entry.tensor());
  const Layout& from = source.layout();
  bool same = from.dtype == to.dtype && from.rank == to.rank;
  for (size_t d = 0; same && d < from.rank; ++d) same = from.sizes[d] == to.sizes[d];
  if (!same) fail(Code::InvalidArgument, "it has another dtype or shape");
  copy_elements(from, to);
}

nb::bytes snapshot(ProgramHandle& self) {
  Turn turn(*self.session);
  self.session->check_state();
  Module& module = self.session->module();
  const Result<size_t> bytes = module.snapshot_bytes();
  if (!bytes.ok()) refuse(module, bytes.status());
  nb::bytes made(nullptr, bytes.value());
  const Status status = module.snapshot(PyBytes_AsString(made.ptr()), bytes.value());
  if (!status.ok()) refuse(module, status);
  return made;
}

void restore(ProgramHandle& self, const nb::bytes& data) {
  Turn turn(*self.session);
  Module& module = self.session->module();
  const Status status = module.restore(data.c_str(), data.size());
  if (!status.ok()) refuse(module, status);
  self.session->state_is_set();
}

void reset_state(ProgramHandle& self) {
  Turn turn(*self.session);
  const Status status = self.session->module().reset_state();
  if (!status.ok()) refuse(self.session->module(), status);
  self.session->state_is_set();
}

}  // namespace

void init_state(nb::class_<ProgramHandle>& program) {
  program.def("fork", [](ProgramHandle& self) { return ProgramHandle{self.session->fork()}; })
      .def("state", state)
      .def("read_state", read_state, nb::arg("index"), nb::arg("as_torch"))
      .def("write_state", write_state, nb::arg("index"), nb::arg("array").none())
      .def("snapshot", snapshot)
      .def("restore", restore, nb::arg("data"))
      .def("reset_state", reset_state);
}

}  // namespace rushlight::python
