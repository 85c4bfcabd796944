#include "rushlight/method/bundled_test.h"

#include <cmath>
#include <cstring>

#include "rushlight/kernel/loops/half.h"

namespace rushlight {
namespace {

using kernels::plain::BFloat;
using kernels::plain::Half;

double number(Half x) { return kernels::plain::widen(x); }
double number(BFloat x) { return kernels::plain::widen(x); }
template <typename T>
double number(T x) {
  return static_cast<double>(x);
}

struct Difference {
  double size;
  bool is_wrong;
};

Difference floating_difference(double got, double expected, const Tolerance& tolerance) {
  if (std::isnan(got) && std::isnan(expected)) return {0, false};
  if (got == expected) return {0, false};  // the same infinity, too
  const double size = std::fabs(got - expected);
  if (!std::isfinite(size)) return {INFINITY, true};
  return {size, !(size <= tolerance.atol + tolerance.rtol * std::fabs(expected))};
}

template <typename T>
Difference whole_difference(T got, T expected, double atol) {
  // Unsigned, so that the difference of any two is right.
  const auto size = got > expected ? static_cast<uint64_t>(got) - static_cast<uint64_t>(expected)
                                   : static_cast<uint64_t>(expected) - static_cast<uint64_t>(got);
  return {static_cast<double>(size), size != 0 && !(static_cast<double>(size) <= atol)};
}

template <typename T>
Difference difference(T got, T expected, const Tolerance& tolerance) {
  if constexpr (std::is_integral_v<T>) {
    return whole_difference(got, expected, tolerance.atol);
  } else {
    return floating_difference(number(got), number(expected), tolerance);
  }
}

// Compares the elements of one output after the other.
class Comparison {
 public:
  Comparison(CaseReport& report, size_t output, const Tolerance& tolerance)
      : report_(report), output_(output), tolerance_(tolerance) {}

  // `parts` numbers are one element.
  template <typename T>
  void compare(const Tensor& got, const Tensor& expected, size_t parts = 1) {
    const size_t count = static_cast<size_t>(got.numel) * parts;
    for (size_t i = 0; i < count; ++i) {
      const T a = read<T>(got, i), b = read<T>(expected, i);
      if (take(number(a), number(b), difference(a, b, tolerance_))) {
        set_index(got, i / parts);
      }
    }
    report_.n_elements += static_cast<uint64_t>(got.numel);
  }
  template <typename T>
  void compare_scalars(T got, T expected) {
    if (take(number(got), number(expected), difference(got, expected, tolerance_))) {
      report_.rank = 0;
    }
    ++report_.n_elements;
  }
  void be_exact() { tolerance_ = {0, 0}; }

 private:
  template <typename T>
  static T read(const Tensor& tensor, size_t i) {
    T value;
    std::memcpy(&value, static_cast<const uint8_t*>(tensor.data) + i * sizeof(T), sizeof(T));
    return value;
  }
  // True if no element before departs more.
  bool take(double got, double expected, const Difference& difference) {
    const bool is_first_wrong = difference.is_wrong && report_.n_wrong == 0;
    if (difference.is_wrong) ++report_.n_wrong;
    if (std::isnan(got) && !std::isnan(expected)) ++report_.n_nan;
    if (difference.size == 0 && !difference.is_wrong) return false;
    report_.relative = std::fmax(report_.relative, expected == 0 || !std::isfinite(difference.size)
                                                       ? static_cast<double>(INFINITY)
                                                       : difference.size / std::fabs(expected));
    if (!(difference.size > report_.absolute) && !is_first_wrong) return false;
    report_.absolute = std::fmax(report_.absolute, difference.size);
    report_.output = output_;
    report_.got = got;
    report_.expected = expected;
    return true;
  }
  // Elements are counted as they lie in memory.
  void set_index(const Tensor& tensor, size_t element) {
    report_.rank = tensor.rank;
    for (size_t k = tensor.rank; k-- > 0;) {
      const uint8_t dim = tensor.dim_order[k];
      const auto size = static_cast<size_t>(tensor.sizes[dim]);
      report_.index[dim] = static_cast<int32_t>(element % size);
      element /= size;
    }
  }

  CaseReport& report_;
  size_t output_;
  Tolerance tolerance_;
};

void compare_tensors(Comparison& comparison, const Tensor& got, const Tensor& expected) {
  switch (got.dtype) {
    case DType::Float32:
      return comparison.compare<float>(got, expected);
    case DType::Float64:
      return comparison.compare<double>(got, expected);
    case DType::Float16:
      return comparison.compare<Half>(got, expected);
    case DType::BFloat16:
      return comparison.compare<BFloat>(got, expected);
    case DType::Complex32:
      return comparison.compare<Half>(got, expected, 2);
    case DType::Complex64:
      return comparison.compare<float>(got, expected, 2);
    case DType::Complex128:
      return comparison.compare<double>(got, expected, 2);
    case DType::Int8:
    case DType::QInt8:
      return comparison.compare<int8_t>(got, expected);
    case DType::Int16:
      return comparison.compare<int16_t>(got, expected);
    case DType::Int32:
    case DType::QInt32:
      return comparison.compare<int32_t>(got, expected);
    case DType::Int64:
      return comparison.compare<int64_t>(got, expected);
    case DType::UInt16:
      return comparison.compare<uint16_t>(got, expected);
    case DType::UInt32:
      return comparison.compare<uint32_t>(got, expected);
    case DType::UInt64:
      return comparison.compare<uint64_t>(got, expected);
    case DType::UInt8:
    case DType::QUInt8:
      return comparison.compare<uint8_t>(got, expected);
    default:  // Bool, and what is compared byte for byte, whatever it means
      comparison.be_exact();
      return comparison.compare<uint8_t>(got, expected, element_size(got.dtype));
  }
}

// "float32 [2, 3]".
class ShapeText {
 public:
  explicit ShapeText(const Tensor& tensor) {
    (void)text_.fail(Code::Ok, "%s [", dtype_name(tensor.dtype));
    for (size_t i = 0; i < tensor.rank; ++i) {
      text_.append("%s%d", i > 0 ? ", " : "", static_cast<int>(tensor.sizes[i]));
    }
    text_.append("]");
  }
  const char* text() const { return text_.text(); }

 private:
  Message text_;
};

// False, with the reason, if two tensors cannot be compared.
bool are_alike(const Tensor& got, const Tensor& expected, size_t output, Message& message) {
  bool same = got.dtype == expected.dtype && got.rank == expected.rank;
  for (size_t i = 0; same && i < got.rank; ++i) same = got.sizes[i] == expected.sizes[i];
  if (!same) {
    (void)message.fail(Code::NotFound, "output %zu is %s, expected is %s", output,
                       ShapeText(got).text(), ShapeText(expected).text());
    return false;
  }
  if (got.numel > 0 && !same_layout(got, expected)) {
    (void)message.fail(Code::NotFound,
                       "output %zu lies in memory in another dim order than what is expected: "
                       "bundle the expected output in the program's",
                       output);
    return false;
  }
  return true;
}

bool compare_values(const EValue& got, const BundledValue& expected, size_t output,
                    const Tolerance& tolerance, CaseReport& report) {
  const bool is_text = got.tag == Tag::String && expected.tag == Tag::None;
  if (got.tag != expected.tag && !is_text) {
    (void)report.message.fail(Code::NotFound, "output %zu is %s, expected is %s", output,
                              tag_name(got.tag), tag_name(expected.tag));
    return false;
  }
  Comparison comparison(report, output, tolerance);
  if (got.tag == Tag::Tensor) {
    const Tensor& wanted = expected.tensor.tensor();
    if (!are_alike(got.tensor(), wanted, output, report.message)) return false;
    compare_tensors(comparison, got.tensor(), wanted);
  } else if (got.tag == Tag::Double) {
    comparison.compare_scalars(got.d, expected.d);
  } else if (got.is_scalar()) {
    if (got.tag == Tag::Bool) comparison.be_exact();
    comparison.compare_scalars(got.i, expected.i);
  }
  return true;
}

Status set_input(Method& method, size_t i, const BundledValue& value) {
  switch (value.tag) {
    case Tag::Tensor:
      return method.set_input(i, value.tensor);
    case Tag::Int:
      return method.set_input_int(i, value.i);
    case Tag::Bool:
      return method.set_input_bool(i, value.i != 0);
    case Tag::Double:
      return method.set_input_double(i, value.d);
    default: {
      const ValueMeta meta = method.meta().input(i);
      if (meta.tag == Tag::String) return method.set_input_string(i, meta.text);
      return method.set_input_none(i);
    }
  }
}

// "at [1, 2]" in words for people.
void tell_worst(CaseReport& report) {
  (void)report.message.fail(Code::NotFound, "output %zu", report.output);
  if (report.rank > 0) report.message.append(" at [");
  for (size_t i = 0; i < report.rank; ++i) {
    report.message.append("%s%d", i > 0 ? ", " : "", static_cast<int>(report.index[i]));
  }
  report.message.append("%s is %g, expected is %g; %llu of %llu elements depart",
                        report.rank > 0 ? "]" : "", report.got, report.expected,
                        static_cast<unsigned long long>(report.n_wrong),
                        static_cast<unsigned long long>(report.n_elements));
}

}  // namespace

Status set_case_inputs(Method& method, const BundledCase& test_case, Message& message) {
  if (test_case.n_inputs() != method.n_inputs()) {
    return message.fail(Code::InvalidArgument, "the case has %zu inputs, %.*s takes %zu",
                        test_case.n_inputs(), method.name().len(), method.name().data(),
                        method.n_inputs());
  }
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    BundledValue value;
    const Status read = test_case.input(i, &value, message);
    if (!read.ok()) {
      message.prepend("input %zu: ", i);
      return read;
    }
    const Status set = set_input(method, i, value);
    if (set.ok()) continue;
    message = method.message();
    return set;
  }
  return {};
}

Status compare_outputs(const Method& method, const BundledCase& test_case,
                       const ToleranceOverride& tolerance, CaseReport& report) {
  report.compared = test_case.n_expected() > 0 || method.n_outputs() == 0;
  report.passed = true;
  if (!report.compared) return {};
  if (test_case.n_expected() != method.n_outputs()) {
    report.passed = false;
    (void)report.message.fail(Code::NotFound, "%zu outputs are expected, %.*s has %zu",
                              test_case.n_expected(), method.name().len(), method.name().data(),
                              method.n_outputs());
    return {};
  }
  for (size_t i = 0; i < method.n_outputs() && report.passed; ++i) {
    BundledValue expected;
    const Status read = test_case.expected(i, &expected, report.message);
    if (!read.ok()) {
      report.passed = false;
      report.message.prepend("expected output %zu: ", i);
      return read;
    }
    Tolerance used = test_case.tolerance(i);
    if (tolerance.rtol >= 0) used.rtol = tolerance.rtol;
    if (tolerance.atol >= 0) used.atol = tolerance.atol;
    report.passed = compare_values(method.output(i), expected, i, used, report);
  }
  if (report.passed && report.n_wrong > 0) {
    report.passed = false;
    tell_worst(report);
  }
  return {};
}

Status run_case(Method& method, const BundledCase& test_case, const ToleranceOverride& tolerance,
                CaseReport& report) {
  report = CaseReport();
  RL_TRY(set_case_inputs(method, test_case, report.message));
  report.started = true;
  const Status ran = method.execute();
  if (!ran.ok()) {
    report.message = method.message();
    return ran;
  }
  return compare_outputs(method, test_case, tolerance, report);
}

}  // namespace rushlight
