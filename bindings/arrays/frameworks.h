// The Python objects of NumPy and torch that calls need again and again, looked up once. torch is
// never imported from here: it is used if the program that calls us has imported it.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays/dlpack.h"
#include "rushlight/core/dtype.h"

namespace rushlight::python {

namespace nb = nanobind;

constexpr size_t kDTypes = 30;

struct Numpy {
  PyObject* empty;                 // numpy.empty
  PyTypeObject* array;             // numpy.ndarray
  PyTypeObject* scalar;            // numpy.generic
  PyTypeObject* boolean;           // numpy.bool_
  PyTypeObject* integer;           // numpy.integer
  PyTypeObject* floating;          // numpy.floating
  PyObject* dtypes[kDTypes];       // by DType; nullptr where NumPy has none of its own
  PyObject* view_dtypes[kDTypes];  // likewise, of numpy_view_dtype(); nullptr until asked for
};

// Imports NumPy at the first call; throws the Python error if it cannot.
const Numpy& numpy();

// The NumPy dtype for `dtype` (borrowed), from ml_dtypes where NumPy has none; throws a Failure
// that says what to install if there is none.
PyObject* numpy_dtype(DType dtype);

// Likewise, with unsigned integers of the same size where there is none.
PyObject* numpy_view_dtype(DType dtype);

struct Torch {
  PyTypeObject* tensor;      // torch.Tensor
  PyTypeObject* parameter;   // torch.nn.Parameter
  const DLExchangeApi* api;  // nullptr: a torch that does not offer it
};

// torch as far as it has been imported; nullptr if it has not.
const Torch* torch();

// True for torch.Tensor and its subclasses.
bool is_torch_tensor(PyObject* object);

// A new torch tensor that takes over `tensor`.
nb::object torch_from_dlpack(DLManagedTensorVersioned* tensor);

}  // namespace rushlight::python
