#include "arrays/arrays.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "arrays/frameworks.h"
#include "failure.h"

namespace rushlight::python {

namespace {

Borrowed unsupported(std::string* why, std::string text) {
  if (why != nullptr) *why = std::move(text);
  return Borrowed::Unsupported;
}

// "BufferError: …": the kind and the first line (torch adds a C++ stack).
std::string error_text(const nb::python_error& error) {
  const auto text = nb::cast<std::string>(nb::str(error.value()));
  const auto kind = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
  return kind + ": " + text.substr(0, text.find('\n'));
}

// A format of the struct module, as NumPy gives it, to a type; false if there is none for it.
bool dtype_of_format(const char* format, Py_ssize_t item_size, DType* dtype) {
  if (format == nullptr) format = "B";
  const bool swapped = *format == '>' || *format == '!';
  if (*format == '<' || *format == '=' || *format == '@' || swapped) ++format;
  if (swapped && item_size > 1) return false;
  const bool complex = *format == 'Z';
  if (complex) ++format;
  if (*format == '\0' || format[1] != '\0') return false;
  const auto bytes = static_cast<size_t>(item_size);
  DType type;
  if (complex) {
    type = bytes == 8 ? DType::Complex64 : DType::Complex128;
  } else if (*format == '?') {
    type = DType::Bool;
  } else if (std::strchr("bhilq", *format) != nullptr) {
    type = bytes == 1   ? DType::Int8
           : bytes == 2 ? DType::Int16
           : bytes == 4 ? DType::Int32
                        : DType::Int64;
  } else if (std::strchr("BHILQ", *format) != nullptr) {
    type = bytes == 1   ? DType::UInt8
           : bytes == 2 ? DType::UInt16
           : bytes == 4 ? DType::UInt32
                        : DType::UInt64;
  } else if (*format == 'e') {
    type = DType::Float16;
  } else if (*format == 'f') {
    type = DType::Float32;
  } else if (*format == 'd') {
    type = DType::Float64;
  } else {
    return false;
  }
  *dtype = type;
  return element_size(type) == bytes;
}

bool dtype_of_dlpack(const DLDataType& type, DType* dtype) {
  struct Row {
    uint8_t code, bits;
    DType dtype;
  };
  static constexpr Row kRows[] = {
      {kDLFloat, 32, DType::Float32},
      {kDLInt, 64, DType::Int64},
      {kDLBool, 8, DType::Bool},
      {kDLUInt, 8, DType::UInt8},
      {kDLInt, 8, DType::Int8},
      {kDLInt, 32, DType::Int32},
      {kDLFloat, 16, DType::Float16},
      {kDLBfloat, 16, DType::BFloat16},
      {kDLFloat, 64, DType::Float64},
      {kDLInt, 16, DType::Int16},
      {kDLUInt, 16, DType::UInt16},
      {kDLUInt, 32, DType::UInt32},
      {kDLUInt, 64, DType::UInt64},
      {kDLComplex, 32, DType::Complex32},
      {kDLComplex, 64, DType::Complex64},
      {kDLComplex, 128, DType::Complex128},
      {kDLFloat8E5M2, 8, DType::Float8E5M2},
      {kDLFloat8E4M3FN, 8, DType::Float8E4M3FN},
      {kDLFloat8E5M2FNUZ, 8, DType::Float8E5M2FNUZ},
      {kDLFloat8E4M3FNUZ, 8, DType::Float8E4M3FNUZ},
  };
  if (type.lanes != 1) return false;
  for (const Row& row : kRows) {
    if (row.code == type.code && row.bits == type.bits) {
      *dtype = row.dtype;
      return true;
    }
  }
  return false;
}

std::string unusable_dtype(PyObject* array) {
  const nb::object dtype = nb::handle(array).attr("dtype");
  return "an array of dtype " + nb::cast<std::string>(nb::str(dtype)) +
         " cannot be passed: convert it to a number type in the machine's byte order";
}

// One dimension at a time from the outermost; the innermost is a loop over elements.
template <size_t kBytes>
void copy_dim(const uint8_t* from, uint8_t* to, const Layout& a, const Layout& b, size_t dim) {
  if (dim == a.rank) {
    std::memcpy(to, from, kBytes);
    return;
  }
  const int64_t stride_from = a.strides[dim], stride_to = b.strides[dim];
  for (int32_t i = 0; i < a.sizes[dim]; ++i, from += stride_from, to += stride_to) {
    if (dim + 1 == a.rank) {
      std::memcpy(to, from, kBytes);
    } else {
      copy_dim<kBytes>(from, to, a, b, dim + 1);
    }
  }
}

bool answers_yes(PyObject* object, PyObject* question) {
  const nb::object answer = nb::steal(PyObject_CallMethodNoArgs(object, question));
  if (!answer.is_valid()) throw nb::python_error();
  return answer.ptr() == Py_True;
}

// True for a torch tensor that stands for its memory's negative or conjugate (`x.conj().imag`),
// which DLPack does not tell.
bool is_lazy(PyObject* tensor, uint8_t code) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  if (code != kDLFloat && code != kDLComplex) return false;
  return answers_yes(tensor, is_neg) || (code == kDLComplex && answers_yes(tensor, is_conj));
}

bool row_major(const Layout& layout) {
  static constexpr uint8_t kOrder[kMaxRank] = {0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15};
  return layout.is_dense(kOrder);
}

}  // namespace

size_t Layout::numel() const {
  size_t n = 1;
  for (size_t i = 0; i < rank; ++i) n *= static_cast<size_t>(sizes[i]);
  return n;
}

bool Layout::is_dense(const uint8_t* dim_order) const {
  const size_t item = element_size(dtype);
  if (numel() == 0) return true;
  const size_t alignment = item < alignof(std::max_align_t) ? item : alignof(std::max_align_t);
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) return false;
  auto expected = static_cast<int64_t>(item);
  for (size_t k = rank; k-- > 0;) {
    const size_t dim = dim_order[k];
    if (sizes[dim] == 1) continue;
    if (strides[dim] != expected) return false;
    expected *= sizes[dim];
  }
  return true;
}

Layout layout_of(const Tensor& tensor) {
  Layout layout;
  layout.data = tensor.as<uint8_t>();
  layout.dtype = tensor.dtype;
  layout.rank = tensor.rank;
  const auto item = static_cast<int64_t>(element_size(tensor.dtype));
  for (size_t i = 0; i < tensor.rank; ++i) {
    layout.sizes[i] = tensor.sizes[i];
    layout.strides[i] = tensor.strides[i] * item;
  }
  return layout;
}

void copy_elements(const Layout& from, const Layout& to) {
  if (from.numel() == 0) return;
  if (row_major(from) && row_major(to)) {
    std::memcpy(to.data, from.data, from.nbytes());
    return;
  }
  switch (element_size(from.dtype)) {
    case 1:
      return copy_dim<1>(from.data, to.data, from, to, 0);
    case 2:
      return copy_dim<2>(from.data, to.data, from, to, 0);
    case 4:
      return copy_dim<4>(from.data, to.data, from, to, 0);
    case 8:
      return copy_dim<8>(from.data, to.data, from, to, 0);
    default:
      return copy_dim<16>(from.data, to.data, from, to, 0);
  }
}

void ArrayRef::release() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
  has_buffer_ = false;
  keep_.reset();
  copy_.reset();
}

Borrowed ArrayRef::borrow(PyObject* object, std::string* why) {
  release();
  is_torch_ = false;
  PyTypeObject* type = Py_TYPE(object);
  const Numpy& np = numpy();
  if (type == np.array) return borrow_buffer(object, why);
  if (const Torch* t = torch()) {
    if (PyObject_TypeCheck(object, t->tensor)) {
      is_torch_ = true;
      const bool plain = type == t->tensor || type == t->parameter;
      return t->api != nullptr && plain ? borrow_torch(object, *t->api, why)
                                        : borrow_capsule(object, why);
    }
  }
  if (PyObject_TypeCheck(object, np.array) || PyObject_TypeCheck(object, np.scalar)) {
    return borrow_buffer(object, why);
  }
  if (nb::hasattr(nb::handle(object), "__dlpack__")) return borrow_capsule(object, why);
  return Borrowed::NotAnArray;
}

Borrowed ArrayRef::borrow_buffer(PyObject* object, std::string* why) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return borrow_extended_dtype(object, why);
  }
  has_buffer_ = true;
  if (!dtype_of_format(buffer_.format, buffer_.itemsize, &layout_.dtype)) {
    return unsupported(why, unusable_dtype(object));
  }
  if (buffer_.ndim > static_cast<int>(kMaxRank)) {
    return unsupported(why, "an array of more than 16 dimensions cannot be passed");
  }
  layout_.data = static_cast<uint8_t*>(buffer_.buf);
  layout_.rank = static_cast<uint8_t>(buffer_.ndim);
  layout_.read_only = buffer_.readonly != 0;
  for (int i = 0; i < buffer_.ndim; ++i) {
    if (buffer_.shape[i] > INT32_MAX) return unsupported(why, "a size is greater than 2^31 - 1");
    layout_.sizes[i] = static_cast<int32_t>(buffer_.shape[i]);
    layout_.strides[i] = buffer_.strides[i];
  }
  return Borrowed::Yes;
}

// bfloat16 and float8 arrays (ml_dtypes) have no buffer format: they are read as integers.
Borrowed ArrayRef::borrow_extended_dtype(PyObject* object, std::string* why) {
  nb::handle array(object);
  const auto name = nb::cast<std::string>(nb::str(nb::object(array.attr("dtype").attr("name"))));
  for (DType dtype : {DType::BFloat16, DType::Float8E5M2, DType::Float8E4M3FN,
                      DType::Float8E5M2FNUZ, DType::Float8E4M3FNUZ}) {
    if (name != dtype_name(dtype)) continue;
    keep_ = array.attr("view")(element_size(dtype) == 2 ? "uint16" : "uint8");
    const Borrowed result = borrow_buffer(keep_.ptr(), why);
    layout_.dtype = dtype;
    return result;
  }
  return unsupported(why, unusable_dtype(object));
}

Borrowed ArrayRef::borrow_torch(PyObject* object, const DLExchangeApi& api, std::string* why) {
  DLTensor tensor;
  if (api.view(object, &tensor) != 0) {
    return unsupported(
        why, "torch does not lend this tensor's memory: " + error_text(nb::python_error()));
  }
  if (is_lazy(object, tensor.dtype.code)) {
    keep_ = nb::handle(object).attr("resolve_conj")().attr("resolve_neg")();
    return borrow_torch(keep_.ptr(), api, why);
  }
  return read_dlpack(tensor, why);
}

Borrowed ArrayRef::borrow_capsule(PyObject* object, std::string* why) {
  nb::object capsule;
  try {
    nb::object lender = nb::borrow(object);
    if (is_torch_) lender = lender.attr("detach")();  // torch lends no tensor that needs gradients
    capsule = lender.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    return unsupported(why, "its memory cannot be read through DLPack: " + error_text(error));
  }
  if (!PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    return unsupported(why, "its __dlpack__() does not return a DLPack capsule");
  }
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  keep_ = std::move(capsule);  // its destructor frees what it holds
  return read_dlpack(managed->tensor, why);
}

Borrowed ArrayRef::read_dlpack(const DLTensor& tensor, std::string* why) {
  if (tensor.device.type != kDLCPU) {
    return unsupported(why, "it is not in the memory of the CPU: pass x.cpu()");
  }
  if (!dtype_of_dlpack(tensor.dtype, &layout_.dtype)) {
    return unsupported(why, "its element type is not one that a program can take");
  }
  if (tensor.ndim < 0 || tensor.ndim > static_cast<int32_t>(kMaxRank)) {
    return unsupported(why, "an array of more than 16 dimensions cannot be passed");
  }
  const auto item = static_cast<int64_t>(element_size(layout_.dtype));
  layout_.rank = static_cast<uint8_t>(tensor.ndim);
  layout_.read_only = false;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] < 0 || tensor.shape[i] > INT32_MAX) {
      return unsupported(why, "a size is greater than 2^31 - 1");
    }
    layout_.sizes[i] = static_cast<int32_t>(tensor.shape[i]);
    layout_.strides[i] = tensor.strides != nullptr ? tensor.strides[i] * item
                         : i + 1 == tensor.ndim    ? item
                                                   : layout_.strides[i + 1] * layout_.sizes[i + 1];
  }
  if (tensor.data == nullptr && layout_.numel() != 0) {
    return unsupported(why, "it has no memory (a fake or meta tensor)");
  }
  layout_.data = static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
  return Borrowed::Yes;
}

const void* ArrayRef::dense(const uint8_t* dim_order) {
  if (layout_.is_dense(dim_order)) return layout_.data;
  Layout packed = layout_;
  copy_.reset(new uint8_t[layout_.nbytes() + 1]);
  packed.data = copy_.get();
  auto stride = static_cast<int64_t>(element_size(layout_.dtype));
  for (size_t k = layout_.rank; k-- > 0;) {
    packed.strides[dim_order[k]] = stride;
    stride *= layout_.sizes[dim_order[k]];
  }
  copy_elements(layout_, packed);
  return packed.data;
}

}  // namespace rushlight::python
