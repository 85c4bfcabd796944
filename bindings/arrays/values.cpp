#include "arrays/values.h"

#include <cstdlib>
#include <cstring>

#include "arrays/arrays.h"
#include "arrays/frameworks.h"
#include "failure.h"

namespace rushlight::python {

namespace {

nb::object shape_tuple(const Tensor& tensor, const uint8_t* order) {
  nb::object shape = nb::steal(PyTuple_New(tensor.rank));
  if (!shape.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < tensor.rank; ++i) {
    PyObject* size = PyLong_FromLong(tensor.sizes[order == nullptr ? i : order[i]]);
    if (size == nullptr) throw nb::python_error();
    PyTuple_SET_ITEM(shape.ptr(), static_cast<Py_ssize_t>(i), size);
  }
  return shape;
}

// numpy.empty(shape, dtype), filled with `bytes` bytes.
nb::object filled_array(PyObject* shape, PyObject* dtype, const void* data, size_t bytes) {
  PyObject* args[] = {nullptr, shape, dtype};
  nb::object array = nb::steal(
      PyObject_Vectorcall(numpy().empty, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  Py_buffer buffer;
  if (!array.is_valid() || PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_WRITABLE) != 0) {
    throw nb::python_error();
  }
  if (bytes != 0) std::memcpy(buffer.buf, data, bytes);
  PyBuffer_Release(&buffer);
  return array;
}

// A dtype of ml_dtypes has no buffer: the array is made of integers of its size and viewed.
PyObject* carrier_dtype(DType dtype) {
  switch (dtype) {
    case DType::BFloat16:
      return numpy_dtype(DType::UInt16);
    case DType::Float8E5M2:
    case DType::Float8E4M3FN:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E4M3FNUZ:
      return numpy_dtype(DType::UInt8);
    default:
      return nullptr;
  }
}

DLDataType dlpack_dtype(DType dtype) {
  const auto bits = static_cast<uint8_t>(element_size(dtype) * 8);
  switch (dtype) {
    case DType::Bool:
      return {kDLBool, 8, 1};
    case DType::BFloat16:
      return {kDLBfloat, 16, 1};
    case DType::Float16:
    case DType::Float32:
    case DType::Float64:
      return {kDLFloat, bits, 1};
    case DType::Complex32:
    case DType::Complex64:
    case DType::Complex128:
      return {kDLComplex, bits, 1};
    case DType::Float8E5M2:
      return {kDLFloat8E5M2, 8, 1};
    case DType::Float8E4M3FN:
      return {kDLFloat8E4M3FN, 8, 1};
    case DType::Float8E5M2FNUZ:
      return {kDLFloat8E5M2FNUZ, 8, 1};
    case DType::Float8E4M3FNUZ:
      return {kDLFloat8E4M3FNUZ, 8, 1};
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
      return {kDLInt, bits, 1};
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
      return {kDLUInt, bits, 1};
    default:
      fail(Code::NotSupported,
           std::string("a result of type ") + dtype_name(dtype) + " cannot be given to Python");
  }
}

// A DLPack tensor and its memory in one block.
struct OwnedTensor {
  static constexpr size_t kAlignment = 64;

  DLManagedTensorVersioned managed;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];

  static size_t header_bytes() {
    return (sizeof(OwnedTensor) + kAlignment - 1) / kAlignment * kAlignment;
  }
};

template <typename Convert>
nb::object to_list(const EValue& value, Convert convert) {
  nb::list list;
  for (size_t k = 0; k < value.size(); ++k) list.append(convert(k));
  return list;
}

}  // namespace

nb::object new_numpy(const Tensor& tensor) {
  PyObject* dtype = numpy_dtype(tensor.dtype);
  PyObject* carrier = carrier_dtype(tensor.dtype);
  const uint8_t* order = tensor.is_contiguous() ? nullptr : tensor.dim_order;
  nb::object shape = shape_tuple(tensor, order);
  nb::object array =
      filled_array(shape.ptr(), carrier != nullptr ? carrier : dtype, tensor.data, tensor.nbytes());
  if (carrier != nullptr) array = array.attr("view")(nb::handle(dtype));
  if (order == nullptr) return array;
  nb::list axes;  // where dimension i lies in memory: the inverse of the order
  for (size_t i = 0; i < tensor.rank; ++i) {
    for (size_t k = 0; k < tensor.rank; ++k) {
      if (order[k] == i) axes.append(k);
    }
  }
  return array.attr("transpose")(axes);
}

nb::object new_torch(const Tensor& tensor) {
  const DLDataType type = dlpack_dtype(tensor.dtype);
  const size_t header = OwnedTensor::header_bytes();
  size_t bytes = header + tensor.nbytes() + OwnedTensor::kAlignment;
  bytes -= bytes % OwnedTensor::kAlignment;
  void* block = std::aligned_alloc(OwnedTensor::kAlignment, bytes);
  if (block == nullptr) throw std::bad_alloc();
  auto* owned = new (block) OwnedTensor{};
  auto* data = static_cast<uint8_t*>(block) + header;
  if (tensor.nbytes() != 0) std::memcpy(data, tensor.data, tensor.nbytes());
  for (size_t i = 0; i < tensor.rank; ++i) {
    owned->shape[i] = tensor.sizes[i];
    owned->strides[i] = tensor.strides[i];
  }
  DLManagedTensorVersioned& m = owned->managed;
  m.version = {1, 0};
  m.context = block;
  m.deleter = [](DLManagedTensorVersioned* self) { std::free(self->context); };
  m.flags = 0;
  m.tensor = {data, {kDLCPU, 0}, tensor.rank, type, owned->shape, owned->strides, 0};
  return torch_from_dlpack(&m);
}

nb::object to_python(const EValue& value, bool as_torch) {
  switch (value.tag) {
    case Tag::Tensor: {
      const Tensor& tensor = value.tensor();
      if (tensor.data == nullptr && tensor.numel != 0) {
        fail(Code::InvalidState, "a tensor has no memory: it was freed or never computed");
      }
      return as_torch ? new_torch(tensor) : new_numpy(tensor);
    }
    case Tag::Int:
      return nb::int_(value.to_int());
    case Tag::Double:
      return nb::float_(value.to_double());
    case Tag::Bool:
      return nb::bool_(value.to_bool());
    case Tag::String:
      return to_str(value.string());
    case Tag::IntList:
      return to_list(value, [&](size_t k) { return nb::int_(value.int_at(k)); });
    case Tag::DoubleList:
      return to_list(value, [&](size_t k) { return nb::float_(value.double_at(k)); });
    case Tag::BoolList:
      return to_list(value, [&](size_t k) { return nb::bool_(value.bool_at(k)); });
    case Tag::TensorList:
    case Tag::OptionalTensorList:
      return to_list(value, [&](size_t k) -> nb::object {
        Tensor* tensor = value.tensor_at(k);
        if (tensor == nullptr) return nb::none();
        EValue item;
        item.tag = Tag::Tensor;
        item.t = tensor;
        return to_python(item, as_torch);
      });
    case Tag::None:
      break;
  }
  return nb::none();
}

nb::str to_str(StringView text) {
  PyObject* s = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (s == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(s);
}

}  // namespace rushlight::python
