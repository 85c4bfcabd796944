#include "arrays/arguments.h"

#include <nanobind/stl/string.h>

#include <cmath>
#include <cstring>

#include "arrays/frameworks.h"
#include "rushlight/module/module.h"

namespace rushlight::python {

namespace {

constexpr int64_t kUnknown = INT64_MIN;  // a symbol without a value so far

Range range_of(nb::handle spec, size_t n_symbols) {
  Range range{nb::cast<int64_t>(spec[0]), nb::cast<int64_t>(spec[1]), nb::cast<int32_t>(spec[2])};
  if (range.symbol >= static_cast<int64_t>(n_symbols)) throw nb::value_error("symbol out of range");
  return range;
}

bool fits(const Range& range, int64_t value, std::vector<int64_t>& symbols) {
  if (value < range.min || value > range.max) return false;
  if (range.symbol < 0) return true;
  int64_t& known = symbols[static_cast<size_t>(range.symbol)];
  if (known == kUnknown) known = value;
  return known == value;
}

// As ExecuTorch compares a float with the traced one.
bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::fabs(a - b) <= 1e-4 + 1e-5 * std::fabs(b);
}

bool is_bool(PyObject* value) {
  return PyBool_Check(value) || PyObject_TypeCheck(value, numpy().boolean);
}

bool read_int(PyObject* value, int64_t* out) {
  if (is_bool(value)) return false;
  nb::object number = nb::steal(PyNumber_Index(value));  // NumPy's integers have one
  if (number.is_valid()) {
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0) return true;
  }
  PyErr_Clear();
  return false;
}

bool read_text(PyObject* value, const std::string& expected) {
  if (!PyUnicode_Check(value)) return false;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value, &size);
  if (text == nullptr) PyErr_Clear();
  return text != nullptr && expected == std::string(text, static_cast<size_t>(size));
}

bool read_double(PyObject* value, double* out) {
  const bool is_number = PyFloat_Check(value) || PyLong_Check(value) ||
                         PyObject_TypeCheck(value, numpy().floating) ||
                         PyObject_TypeCheck(value, numpy().integer);
  if (!is_number || is_bool(value)) return false;
  *out = PyFloat_AsDouble(value);
  if (*out != -1.0 || PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();  // an int that is too great
  return false;
}

}  // namespace

Expectation::Expectation(const MethodMeta& meta) : inputs_(meta.n_inputs()) {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const ValueMeta value = meta.input(k);
    Expected& e = inputs_[k];
    e.tag = value.tag;
    e.i = value.i;
    e.d = value.d;
    e.text.assign(value.text.data(), value.text.size());
    if (value.tag != Tag::Tensor) continue;
    e.dtype = value.tensor.dtype;
    e.planned = value.tensor.planned;
    std::memcpy(e.dim_order, value.tensor.dim_order, sizeof e.dim_order);
    for (int32_t size : value.tensor.shape()) {
      const bool fixed = value.tensor.dynamism == Dynamism::Static;
      e.dims.push_back({fixed ? size : 0, size, -1});
    }
  }
}

void Expectation::narrow(nb::list specs, size_t n_symbols) {
  if (specs.size() != inputs_.size()) throw nb::value_error("one spec per input is needed");
  n_symbols_ = n_symbols;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    nb::object spec = specs[k];
    Expected& e = inputs_[k];
    if (spec.is_none()) continue;
    if (e.tag == Tag::Tensor) {
      if (nb::len(spec) != e.dims.size())
        throw nb::value_error("one range per dimension is needed");
      for (size_t d = 0; d < e.dims.size(); ++d) e.dims[d] = range_of(spec[d], n_symbols);
    } else {
      e.fixed = false;
      if (e.tag == Tag::Int) e.range = range_of(spec, n_symbols);
    }
  }
}

bool Expectation::borrows() const {
  for (const Expected& e : inputs_) {
    if (e.tag == Tag::Tensor && !e.planned) return true;
  }
  return false;
}

bool Expectation::read_one(PyObject* value, const Expected& e, Argument& argument,
                           std::vector<int64_t>& symbols) const {
  switch (e.tag) {
    case Tag::Tensor: {
      if (argument.array.borrow(value, nullptr) != Borrowed::Yes) return false;
      const Layout& layout = argument.array.layout();
      if (layout.dtype != e.dtype || layout.rank != e.dims.size()) return false;
      for (size_t d = 0; d < layout.rank; ++d) {
        if (!fits(e.dims[d], layout.sizes[d], symbols)) return false;
      }
      return true;
    }
    case Tag::Int:
      if (!read_int(value, &argument.i)) return false;
      return e.fixed ? argument.i == e.i : fits(e.range, argument.i, symbols);
    case Tag::Bool:
      if (!is_bool(value)) return false;
      argument.i = PyObject_IsTrue(value);
      return !e.fixed || argument.i == e.i;
    case Tag::Double:
      return read_double(value, &argument.d) && (!e.fixed || close(argument.d, e.d));
    case Tag::String:
      return read_text(value, e.text);
    case Tag::None:
      return value == Py_None;
    default:
      return false;  // lists are never inputs
  }
}

bool Expectation::read(nb::handle values, std::vector<Argument>& arguments) const {
  const auto n = static_cast<size_t>(PySequence_Fast_GET_SIZE(values.ptr()));
  if (n != inputs_.size()) return false;
  std::vector<int64_t> symbols(n_symbols_, kUnknown);
  for (size_t k = 0; k < n; ++k) {
    PyObject* value = PySequence_Fast_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(k));
    if (!read_one(value, inputs_[k], arguments[k], symbols)) return false;
  }
  return true;
}

Status Expectation::set(Method& method, std::vector<Argument>& arguments) const {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const Expected& e = inputs_[k];
    Argument& a = arguments[k];
    switch (e.tag) {
      case Tag::Tensor: {
        const void* data = a.array.dense(e.dim_order);
        const HostTensor tensor(e.dtype, a.array.layout().shape(), data, e.dim_order);
        RL_TRY(method.set_input(k, tensor));
        break;
      }
      case Tag::Int:
        RL_TRY(method.set_input_int(k, a.i));
        break;
      case Tag::Bool:
        RL_TRY(method.set_input_bool(k, a.i != 0));
        break;
      case Tag::Double:
        RL_TRY(method.set_input_double(k, a.d));
        break;
      case Tag::String:
        RL_TRY(method.set_input_string(k, {e.text.data(), e.text.size()}));
        break;
      default:
        RL_TRY(method.set_input_none(k));
    }
  }
  return {};
}

}  // namespace rushlight::python
