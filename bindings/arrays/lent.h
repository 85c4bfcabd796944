// Memory of programs and modules that backends in Python look at without a copy.
//
// Python cannot revoke memory that a NumPy array refers to, and a copy of every argument would
// defeat backends without copies. So lent memory stays valid:
//
// * Payload and named data belong to the program, never change, and stay as long as anything made
//   of them is alive (`owner`).
// * The arguments of a call are to be let go of when execute() returns. All that NumPy, torch and
//   the buffer protocol make of an array refers to it or to its memory, so two counts of references
//   tell whether something was kept. Then the call fails, and until it is let go of, the module
//   neither runs nor gives its memory back (Session::lend): touching it changes no result. The
//   arrays that the backend was given become read-only, and nothing made of them from then on can
//   be written; what it had made of them before cannot be found, and is safe to write.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "rushlight/core/span.h"
#include "rushlight/core/tensor.h"

namespace rushlight::python {

namespace nb = nanobind;

// An array over the memory of a tensor.
struct LentArray {
  nb::object memory;  // what the array lies over
  nb::object array;
  nb::object view;  // of the array: what was given out, until it is taken back or revoked

  // A view of the array, so that nobody else can change the array itself.
  nb::object give();
  // Nothing but this object refers to it.
  bool is_back() const;
  // Lets go of the view if nobody else has it; is_back() then.
  bool take_back();
  // Makes the array, the view and the memory read-only.
  void revoke() noexcept;
};

// An array over the memory of `tensor`, not a copy. Types that NumPy has not, and ml_dtypes does
// not add, are seen as unsigned integers of their size.
LentArray lend_array(const Tensor& tensor, bool writable);

// A memoryview, read-only; it keeps `owner`.
nb::object lend_bytes(Span<const uint8_t> bytes, std::shared_ptr<const void> owner);

// What a backend kept of a call.
struct Loan {
  std::string backend;
  std::string what;  // "args[1]"
  LentArray array;
};

// Defines `_core.LentMemory`.
void init_lent(nb::module_& m);

}  // namespace rushlight::python
