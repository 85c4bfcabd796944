// What an object is as an input, in words, for messages about inputs that were refused; and its
// bytes, for files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays/arrays.h"
#include "bindings.h"
#include "failure.h"

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

// (dtype, sizes, the elements in a dim order).
nb::tuple bytes_of(nb::handle object, const std::vector<uint8_t>& dim_order) {
  ArrayRef array;
  std::string why;
  const Borrowed borrowed = array.borrow(object.ptr(), &why);
  if (borrowed == Borrowed::NotAnArray) {
    fail(Code::InvalidType,
         "an object of type " + std::string(Py_TYPE(object.ptr())->tp_name) + " is no array");
  }
  if (borrowed == Borrowed::Unsupported) fail(Code::NotSupported, why);
  const Layout& layout = array.layout();
  if (dim_order.size() != layout.rank || !is_permutation(dim_order.data(), layout.rank)) {
    fail(Code::InvalidArgument, "an array of " + std::to_string(layout.rank) +
                                    " dimensions has no dim order of " +
                                    std::to_string(dim_order.size()));
  }
  nb::list sizes;
  for (int32_t size : layout.shape()) sizes.append(size);
  const void* data = array.dense(dim_order.data());
  return nb::make_tuple(dtype_name(layout.dtype), nb::tuple(sizes),
                        nb::bytes(static_cast<const char*>(data), layout.nbytes()));
}

}  // namespace

void init_arrays(nb::module_& m) {
  m.def("describe_array", describe, nb::arg("object").none());
  m.def("array_bytes", bytes_of, nb::arg("array"), nb::arg("dim_order"));
}

}  // namespace rushlight::python
