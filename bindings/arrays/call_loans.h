// What code in Python is lent for one call: arrays over the runtime's tensors, which it must let go
// of when it returns (lent.h).
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "arrays/lent.h"
#include "rushlight/core/tensor.h"

namespace rushlight::python {

namespace nb = nanobind;

// Calls with `n` arguments; args[0] is left free, as vectorcall wants it.
nb::object call_python(const nb::object& function, PyObject** args, size_t n);

class CallLoans {
 public:
  // An array over argument `k`, made anew only if the tensor has changed since the last call.
  nb::object view(size_t k, const Tensor& tensor, bool writable);
  // An array over another tensor, which messages call `what`.
  nb::object lend(std::string what, const Tensor& tensor, bool writable);
  // After the call: what `who` still refers to, read-only from now on.
  std::vector<Loan> take_kept(const std::string& who);

 private:
  // The array over an argument, kept from call to call: tensors mostly stay where they are. Views
  // of it are lent, so that nobody can change it.
  struct KeptArray {
    Tensor as_lent;  // as it was; its arrays may have changed since
    int32_t sizes[kMaxRank] = {};
    bool is_writable = false;
    LentArray lent;

    bool fits(const Tensor& tensor, bool writable) const;
  };

  bool take_back();
  std::vector<Loan> take(const std::string& who);

  std::vector<KeptArray> arguments_;
  std::vector<Loan> others_;
};

// "args[3]"
std::string name_of_argument(size_t k);

}  // namespace rushlight::python
