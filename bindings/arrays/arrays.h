// Arrays of Python as memory: NumPy arrays and scalars through the buffer protocol, torch tensors
// and everything else through DLPack. And back: results as new NumPy arrays or torch tensors.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

#include "arrays/dlpack.h"
#include "rushlight/core/span.h"
#include "rushlight/core/tensor.h"

namespace rushlight::python {

namespace nb = nanobind;

// Memory with a shape, as its owner laid it out.
struct Layout {
  uint8_t* data = nullptr;
  DType dtype = DType::Float32;
  uint8_t rank = 0;
  bool read_only = false;
  int32_t sizes[kMaxRank];
  int64_t strides[kMaxRank];  // in bytes

  Span<const int32_t> shape() const { return {sizes, rank}; }
  size_t numel() const;
  size_t nbytes() const { return numel() * element_size(dtype); }
  // The elements lie without gaps in the order of `dim_order`, aligned for their type.
  bool is_dense(const uint8_t* dim_order) const;
};

// A layout over a tensor of the runtime.
Layout layout_of(const Tensor& tensor);

// Copies elements between layouts of equal shape and dtype.
void copy_elements(const Layout& from, const Layout& to);

enum class Borrowed : uint8_t { Yes, NotAnArray, Unsupported };

// An array of Python's that is read (or written) while this object lives. Create, use and destroy
// it with the GIL held; the memory may be touched without.
class ArrayRef {
 public:
  ArrayRef() = default;
  ~ArrayRef() { release(); }
  ArrayRef(const ArrayRef&) = delete;
  ArrayRef& operator=(const ArrayRef&) = delete;

  // NotAnArray: an object of another kind. Unsupported: an array that cannot be used as it is;
  // `*why` (may be nullptr) then says why and what to do.
  Borrowed borrow(PyObject* object, std::string* why);
  bool is_torch() const { return is_torch_; }
  bool is_borrowed() const { return has_buffer_ || keep_.is_valid() || layout_.data != nullptr; }
  const Layout& layout() const { return layout_; }

  // The elements as dense memory in the order of `dim_order`: the array's own, or a copy that lives
  // as long as this object.
  const void* dense(const uint8_t* dim_order);

 private:
  Borrowed borrow_buffer(PyObject* object, std::string* why);
  Borrowed borrow_extended_dtype(PyObject* object, std::string* why);
  Borrowed borrow_torch(PyObject* object, const DLExchangeApi& api, std::string* why);
  Borrowed borrow_capsule(PyObject* object, std::string* why);
  Borrowed read_dlpack(const DLTensor& tensor, std::string* why);
  void release();

  Layout layout_;
  bool is_torch_ = false;
  bool has_buffer_ = false;
  Py_buffer buffer_;
  nb::object keep_;  // a view or a capsule that the memory hangs on
  std::unique_ptr<uint8_t[]> copy_;
};

// A new array that holds a copy of `tensor`.
nb::object new_numpy(const Tensor& tensor);
nb::object new_torch(const Tensor& tensor);

}  // namespace rushlight::python
