// The packed forms of weights, element by element.
#include <cstring>
#include <vector>

#include "check.h"
#include "rushlight/backends/xnnpack/weights/pack.h"
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/kernel/loops/half.h"

namespace {

using namespace rushlight::xnnpack;
namespace plain = rushlight::kernels::plain;

constexpr int64_t kPanel = rushlight::engine::kPanel;
constexpr float kUnset = -7;

// Numbers from 1 on, so that none is 0.
std::vector<float> counted(int64_t n) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  return numbers;
}

// Element (row, column) of a matrix in panels. Columns after the last one must be 0.
float in_panels(const float* panels, int64_t depth, int64_t row, int64_t column) {
  return panels[(column / kPanel * depth + row) * kPanel + column % kPanel];
}

void check_zeros(const float* panels, int64_t depth, int64_t columns) {
  for (int64_t c = columns; c % kPanel != 0; ++c) {
    for (int64_t row = 0; row < depth; ++row) CHECK(in_panels(panels, depth, row, c) == 0);
  }
}

void test_linear(int64_t inputs, int64_t outputs) {
  const std::vector<float> numbers = counted(inputs * outputs);
  Filter filter;
  filter.data = numbers.data();
  filter.inputs = inputs;
  filter.outputs = outputs;
  for (const bool transposed : {false, true}) {
    std::vector<float> packed(static_cast<size_t>(dense_floats(filter)), kUnset);
    pack_linear(filter, transposed, packed.data(), nullptr);
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t at = transposed ? i * outputs + o : o * inputs + i;
        CHECK(in_panels(packed.data(), inputs, i, o) == numbers[static_cast<size_t>(at)]);
      }
    }
    check_zeros(packed.data(), inputs, outputs);
  }
}

// Integers up to 2^8, which the 16-bit types can represent.
template <typename Half>
void test_linear_of_halves(int64_t inputs, int64_t outputs, rushlight::DType dtype,
                           Half (*narrow)(float)) {
  std::vector<Half> halves;
  for (int64_t i = 0; i < inputs * outputs; ++i) halves.push_back(narrow(1.0f + i % 256));
  std::vector<uint8_t> bytes(halves.size() * sizeof(Half) + 1);
  std::memcpy(bytes.data() + 1, halves.data(), bytes.size() - 1);
  Filter filter;
  filter.data = bytes.data() + 1;  // not aligned
  filter.dtype = dtype;
  filter.inputs = inputs;
  filter.outputs = outputs;
  for (const bool transposed : {false, true}) {
    std::vector<float> packed(static_cast<size_t>(dense_floats(filter)), kUnset);
    pack_linear(filter, transposed, packed.data(), nullptr);
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t at = transposed ? i * outputs + o : o * inputs + i;
        CHECK(in_panels(packed.data(), inputs, i, o) == 1.0f + at % 256);
      }
    }
    check_zeros(packed.data(), inputs, outputs);
  }
}

Filter convolution(const std::vector<float>& numbers, int64_t taps, int64_t inputs, int64_t outputs,
                   int64_t groups) {
  Filter filter;
  filter.data = numbers.data();
  filter.taps = taps;
  filter.inputs = inputs;
  filter.outputs = outputs;
  filter.groups = groups;
  return filter;
}

// Panels of each group, with rows (tap, input); for a transposed convolution with columns (tap,
// output).
void test_convolution(int64_t taps, int64_t inputs, int64_t outputs, int64_t groups) {
  const std::vector<float> numbers = counted(groups * outputs * taps * inputs);
  const Filter filter = convolution(numbers, taps, inputs, outputs, groups);
  std::vector<float> dense(static_cast<size_t>(dense_floats(filter)), kUnset);
  std::vector<float> transposed(static_cast<size_t>(transposed_floats(filter)), kUnset);
  pack_dense(filter, dense.data(), nullptr);
  pack_transposed(filter, transposed.data());
  const size_t dense_group = dense.size() / static_cast<size_t>(groups);
  const size_t transposed_group = transposed.size() / static_cast<size_t>(groups);
  for (int64_t g = 0; g < groups; ++g) {
    const float* panels = dense.data() + static_cast<size_t>(g) * dense_group;
    const float* transposed_panels = transposed.data() + static_cast<size_t>(g) * transposed_group;
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t i = 0; i < inputs; ++i) {
          const int64_t at = ((g * outputs + o) * taps + t) * inputs + i;
          const float number = numbers[static_cast<size_t>(at)];
          CHECK(in_panels(panels, taps * inputs, t * inputs + i, o) == number);
          CHECK(in_panels(transposed_panels, inputs, i, t * outputs + o) == number);
        }
      }
    }
    check_zeros(panels, taps * inputs, outputs);
    check_zeros(transposed_panels, inputs, taps * outputs);
  }
}

void test_depthwise(int64_t taps, int64_t outputs, int64_t groups) {
  const std::vector<float> numbers = counted(taps * outputs * groups);
  const Filter filter = convolution(numbers, taps, 1, outputs, groups);
  std::vector<float> packed(static_cast<size_t>(depthwise_floats(filter)), kUnset);
  pack_depthwise(filter, packed.data());
  const int64_t channels = outputs * groups;
  const int64_t row = (channels + kPanel - 1) / kPanel * kPanel;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t c = 0; c < row; ++c) {
      const float wanted = c < channels ? numbers[static_cast<size_t>(t * channels + c)] : 0;
      CHECK(packed[static_cast<size_t>(t * row + c)] == wanted);
    }
  }
}

void test_bias() {
  const std::vector<float> numbers = counted(17);
  std::vector<float> packed(static_cast<size_t>(bias_floats(17)), kUnset);
  pack_bias(numbers.data(), 17, packed.data());
  for (size_t i = 0; i < packed.size(); ++i) CHECK(packed[i] == (i < 17 ? numbers[i] : 0));
}

// Numbers of elements do not overflow.
void test_sizes() {
  const int64_t large = int64_t{1} << 32;
  CHECK(dense_floats(convolution({}, large, large, 1, 1)) == -1);
  CHECK(depthwise_floats(convolution({}, large, 1, large, large)) == -1);
  CHECK(transposed_floats(convolution({}, large, large, large, 1)) == -1);
}

}  // namespace

int main() {
  test_linear(5, 33);
  test_linear(1, 16);
  for (const int64_t inputs : {1, 64, 150}) {
    test_linear_of_halves(inputs, 33, rushlight::DType::Float16, plain::narrow_half);
    test_linear_of_halves(inputs, 16, rushlight::DType::BFloat16, plain::narrow_bfloat);
  }
  test_convolution(6, 3, 17, 1);
  test_convolution(9, 2, 5, 3);
  test_depthwise(9, 1, 17);
  test_depthwise(4, 2, 8);
  test_bias();
  test_sizes();
  return rushlight::test::check_result();
}
