#include "arrays/lent.h"

#include "arrays/frameworks.h"

namespace rushlight::python {

namespace {

struct LentMemory {
  void* data;
  size_t bytes;
  bool writable;
  std::shared_ptr<const void> owner;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* memory = nb::inst_ptr<LentMemory>(self);
  return PyBuffer_FillInfo(view, self, memory->data, static_cast<Py_ssize_t>(memory->bytes),
                           memory->writable ? 0 : 1, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

nb::object lend(void* data, size_t bytes, bool writable, std::shared_ptr<const void> owner) {
  static char nothing;
  return nb::cast(LentMemory{bytes != 0 ? data : &nothing, bytes, writable, std::move(owner)});
}

nb::object shape_tuple(const Tensor& tensor) {
  nb::object shape = nb::steal(PyTuple_New(tensor.rank));
  if (!shape.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < tensor.rank; ++i) {
    PyObject* size = PyLong_FromLong(tensor.sizes[i]);
    if (size == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(i), size);
  }
  return shape;
}

void make_read_only(nb::handle array) {
  if (array.is_valid()) array.attr("setflags")(nb::arg("write") = false);
}

}  // namespace

nb::object LentArray::give() {
  static PyObject* const name = PyUnicode_InternFromString("view");
  PyObject* made = PyObject_CallMethodNoArgs(array.ptr(), name);
  if (made == nullptr) throw nb::python_error();
  view = nb::steal(made);
  return view;
}

bool LentArray::is_back() const {
  if (!array.is_valid()) return true;
  // The array has one reference to its memory, this object another.
  return Py_REFCNT(array.ptr()) == 1 && Py_REFCNT(memory.ptr()) == 2;
}

bool LentArray::take_back() {
  if (view.is_valid() && Py_REFCNT(view.ptr()) == 1) view.reset();
  return is_back();
}

void LentArray::revoke() noexcept {
  // NumPy lets an array be made writable again only if what it lies over is.
  nb::inst_ptr<LentMemory>(memory)->writable = false;
  try {
    make_read_only(array);
    make_read_only(view);
  } catch (...) {  // out of memory: what was kept stays writable, and safe
    PyErr_Clear();
  }
  view.reset();
}

LentArray lend_array(const Tensor& tensor, bool writable) {
  LentArray lent;
  lent.memory = lend(tensor.data, tensor.nbytes(), writable, nullptr);
  nb::object shape = shape_tuple(tensor);
  auto* type = reinterpret_cast<PyObject*>(numpy().array);
  PyObject* dtype = numpy_view_dtype(tensor.dtype);
  if (tensor.is_contiguous()) {
    PyObject* args[] = {nullptr, shape.ptr(), dtype, lent.memory.ptr()};
    PyObject* made =
        PyObject_Vectorcall(type, args + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (made == nullptr) throw nb::python_error();
    lent.array = nb::steal(made);
    return lent;
  }
  nb::list strides;
  for (size_t i = 0; i < tensor.rank; ++i) {
    strides.append(static_cast<int64_t>(tensor.strides[i]) *
                   static_cast<int64_t>(element_size(tensor.dtype)));
  }
  lent.array = nb::handle(type)(shape, nb::handle(dtype), lent.memory, 0, nb::tuple(strides));
  return lent;
}

nb::object lend_bytes(Span<const uint8_t> bytes, std::shared_ptr<const void> owner) {
  const nb::object memory =
      lend(const_cast<uint8_t*>(bytes.data()), bytes.size(), false, std::move(owner));
  PyObject* view = PyMemoryView_FromObject(memory.ptr());
  if (view == nullptr) throw nb::python_error();
  return nb::steal(view);
}

void init_lent(nb::module_& m) { nb::class_<LentMemory>(m, "LentMemory", nb::type_slots(slots)); }

}  // namespace rushlight::python
