#include "arrays/frameworks.h"

#include <string>

#include "failure.h"

namespace rushlight::python {

namespace {

struct Name {
  DType dtype;
  const char* name;
};

constexpr Name kNumpyNames[] = {
    {DType::UInt8, "uint8"},           {DType::Int8, "int8"},       {DType::Int16, "int16"},
    {DType::Int32, "int32"},           {DType::Int64, "int64"},     {DType::Float16, "float16"},
    {DType::Float32, "float32"},       {DType::Float64, "float64"}, {DType::Complex64, "complex64"},
    {DType::Complex128, "complex128"}, {DType::Bool, "bool"},       {DType::UInt16, "uint16"},
    {DType::UInt32, "uint32"},         {DType::UInt64, "uint64"},
};

// What the package ml_dtypes adds to NumPy.
constexpr Name kExtraNames[] = {
    {DType::BFloat16, "bfloat16"},
    {DType::Float8E5M2, "float8_e5m2"},
    {DType::Float8E4M3FN, "float8_e4m3fn"},
    {DType::Float8E5M2FNUZ, "float8_e5m2fnuz"},
    {DType::Float8E4M3FNUZ, "float8_e4m3fnuz"},
};

Numpy* import_numpy() {
  nb::module_ np = nb::module_::import_("numpy");
  auto* instance = new Numpy{};  // lives as long as the process
  instance->empty = nb::object(np.attr("empty")).release().ptr();
  const auto type = [&np](const char* name) {
    return reinterpret_cast<PyTypeObject*>(nb::object(np.attr(name)).release().ptr());
  };
  instance->array = type("ndarray");
  instance->scalar = type("generic");
  instance->boolean = type("bool_");
  instance->integer = type("integer");
  instance->floating = type("floating");
  for (const Name& n : kNumpyNames) {
    nb::object dtype = np.attr("dtype")(n.name);
    instance->dtypes[static_cast<size_t>(n.dtype)] = dtype.release().ptr();
  }
  return instance;
}

const char* extra_name(DType dtype) {
  for (const Name& n : kExtraNames) {
    if (n.dtype == dtype) return n.name;
  }
  return nullptr;
}

Torch* find_torch(PyObject* module) {
  nb::object type = nb::getattr(nb::handle(module), "Tensor", nb::none());
  nb::object nn = nb::getattr(nb::handle(module), "nn", nb::none());
  nb::object parameter = nb::getattr(nn, "Parameter", nb::none());
  if (!PyType_Check(type.ptr()) || !PyType_Check(parameter.ptr())) return nullptr;  // half imported
  auto* instance = new Torch{};  // lives as long as the process
  nb::object capsule = nb::getattr(type, "__dlpack_c_exchange_api__", nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) {
    auto* api = static_cast<const DLExchangeApi*>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
    if (api->version.major == 1 && api->view != nullptr) instance->api = api;
  }
  instance->tensor = reinterpret_cast<PyTypeObject*>(type.release().ptr());
  instance->parameter = reinterpret_cast<PyTypeObject*>(parameter.release().ptr());
  return instance;
}

void delete_unversioned(DLManagedTensor* old) {
  auto* inner = static_cast<DLManagedTensorVersioned*>(old->context);
  inner->deleter(inner);
  delete old;
}

// For a torch without the table of C functions: the capsule that every version understands.
nb::object capsule_of(DLManagedTensorVersioned* tensor) {
  auto* old = new DLManagedTensor{tensor->tensor, tensor, delete_unversioned};
  PyObject* capsule = PyCapsule_New(old, "dltensor", [](PyObject* self) {
    if (!PyCapsule_IsValid(self, "dltensor")) return;  // taken over and renamed by its consumer
    auto* left = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(self, "dltensor"));
    left->deleter(left);
  });
  if (capsule == nullptr) {
    old->deleter(old);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

}  // namespace

const Numpy& numpy() {
  static Numpy* instance = nullptr;
  if (instance == nullptr) instance = import_numpy();
  return *instance;
}

PyObject* numpy_dtype(DType dtype) {
  auto index = static_cast<size_t>(dtype);
  const Numpy& np = numpy();
  if (index < kDTypes && np.dtypes[index] != nullptr) return np.dtypes[index];
  const char* name = extra_name(dtype);
  if (name == nullptr) {
    fail(Code::NotSupported, std::string("NumPy has no dtype for ") + dtype_name(dtype) +
                                 ": call with torch tensors to get torch tensors back");
  }
  try {
    nb::object type = nb::module_::import_("ml_dtypes").attr(name);
    nb::object made = nb::module_::import_("numpy").attr("dtype")(type);
    const_cast<Numpy&>(np).dtypes[index] = made.release().ptr();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    fail(Code::NotSupported,
         std::string("a result is ") + name +
             ", which NumPy lacks: install ml_dtypes, or call with torch tensors");
  }
  return np.dtypes[index];
}

PyObject* numpy_view_dtype(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  if (index >= kDTypes) fail(Code::NotSupported, "NumPy has no dtype for an unknown type");
  PyObject*& cached = const_cast<Numpy&>(numpy()).view_dtypes[index];
  if (cached != nullptr) return cached;
  try {
    cached = numpy_dtype(dtype);
  } catch (const Failure&) {
    const size_t bytes = element_size(dtype);
    cached = numpy_dtype(bytes == 1   ? DType::UInt8
                         : bytes == 2 ? DType::UInt16
                         : bytes == 4 ? DType::UInt32
                                      : DType::UInt64);
  }
  return cached;
}

const Torch* torch() {
  static Torch* instance = nullptr;
  if (instance != nullptr) return instance;
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* module = PyDict_GetItemString(modules, "torch");
  if (module == nullptr || module == Py_None) return nullptr;
  instance = find_torch(module);
  return instance;
}

bool is_torch_tensor(PyObject* object) {
  const Torch* t = torch();
  return t != nullptr && PyObject_TypeCheck(object, t->tensor) != 0;
}

nb::object torch_from_dlpack(DLManagedTensorVersioned* tensor) {
  const Torch* t = torch();
  if (t->api != nullptr) {
    void* object = nullptr;
    if (t->api->to_object(tensor, &object) != 0) throw nb::python_error();
    return nb::steal(static_cast<PyObject*>(object));
  }
  nb::object capsule = capsule_of(tensor);
  return nb::module_::import_("torch.utils.dlpack").attr("from_dlpack")(capsule);
}

}  // namespace rushlight::python
