#include "arrays/call_loans.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "gil.h"

namespace rushlight::python {

namespace {

// Runs the garbage collector, which frees objects in reference cycles.
void collect(int generation) {
  try {
    nb::module_::import_("gc").attr("collect")(generation);
  } catch (const nb::python_error&) {
    PyErr_Clear();
  }
}

// Lets other threads run that hold references for a moment, as profilers do.
void let_others_look() {
  const GilRelease unlocked;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

nb::object call_python(const nb::object& function, PyObject** args, size_t n) {
  PyObject* result = or_wait([&] {
    return PyObject_Vectorcall(function.ptr(), args + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               nullptr);
  });
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

std::string name_of_argument(size_t k) { return "args[" + std::to_string(k) + "]"; }

bool CallLoans::KeptArray::fits(const Tensor& tensor, bool writable) const {
  return lent.array.is_valid() && as_lent.data == tensor.data && as_lent.dtype == tensor.dtype &&
         as_lent.rank == tensor.rank && as_lent.dim_order == tensor.dim_order &&
         is_writable == writable &&
         std::memcmp(sizes, tensor.sizes, tensor.rank * sizeof(int32_t)) == 0;
}

nb::object CallLoans::view(size_t k, const Tensor& tensor, bool writable) {
  if (arguments_.size() <= k) arguments_.resize(k + 1);
  KeptArray& kept = arguments_[k];
  if (!kept.fits(tensor, writable)) {
    kept.lent = lend_array(tensor, writable);
    kept.as_lent = tensor;
    kept.is_writable = writable;
    std::memcpy(kept.sizes, tensor.sizes, tensor.rank * sizeof(int32_t));
  }
  return kept.lent.give();
}

nb::object CallLoans::lend(std::string what, const Tensor& tensor, bool writable) {
  others_.push_back({"", std::move(what), lend_array(tensor, writable)});
  return others_.back().array.give();
}

bool CallLoans::take_back() {
  for (KeptArray& kept : arguments_) {
    if (!kept.lent.take_back()) return false;
  }
  for (Loan& loan : others_) {
    if (!loan.array.take_back()) return false;
  }
  return true;
}

// Names what is still held.
std::vector<Loan> CallLoans::take(const std::string& who) {
  std::vector<Loan> out;
  for (size_t k = 0; k < arguments_.size(); ++k) {
    if (arguments_[k].lent.take_back()) continue;
    out.push_back({who, name_of_argument(k), std::move(arguments_[k].lent)});
    arguments_[k].lent = {};
  }
  for (Loan& loan : others_) {
    if (!loan.array.take_back()) out.push_back({who, loan.what, std::move(loan.array)});
  }
  others_.clear();
  for (Loan& loan : out) loan.array.revoke();
  return out;
}

std::vector<Loan> CallLoans::take_kept(const std::string& who) {
  constexpr int kLooks = 5;
  if (take_back()) {
    others_.clear();
    return {};
  }
  for (int generation : {0, 2}) {
    collect(generation);
    if (take_back()) break;
  }
  for (int i = 0; i < kLooks && !take_back(); ++i) let_others_look();
  return take(who);
}

}  // namespace rushlight::python
