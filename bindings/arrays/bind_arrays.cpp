// What an object is as an input, in words: for messages about inputs that were refused.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "arrays/arrays.h"
#include "bindings.h"

namespace rushlight::python {

namespace {

// (dtype, sizes) of an array; a str that says why an array cannot be passed; None if it is not an
// array.
nb::object describe(nb::handle object) {
  ArrayRef array;
  std::string why;
  switch (array.borrow(object.ptr(), &why)) {
    case Borrowed::NotAnArray:
      return nb::none();
    case Borrowed::Unsupported:
      return nb::str(why.c_str());
    case Borrowed::Yes:
      break;
  }
  nb::list sizes;
  for (int32_t size : array.layout().shape()) sizes.append(size);
  return nb::make_tuple(dtype_name(array.layout().dtype), nb::tuple(sizes));
}

}  // namespace

void init_arrays(nb::module_& m) { m.def("describe_array", describe, nb::arg("object").none()); }

}  // namespace rushlight::python
