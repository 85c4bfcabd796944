// The CPU engine's copies between memory with any strides, and between floating types, compared
// with plain loops.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/kernel/loops/half.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;
namespace plain = rushlight::kernels::plain;

namespace {

// Calls body(in, out) with the positions of each element of a copy.
template <typename Body>
void for_each_element(const Copy& copy, Body body) {
  int64_t count = 1;
  for (size_t d = 0; d < copy.rank; ++d) count *= copy.sizes[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t in = 0;
    int64_t out = 0;
    for (size_t d = copy.rank; d-- > 0; rest /= copy.sizes[d]) {
      in += rest % copy.sizes[d] * copy.in_strides[d];
      out += rest % copy.sizes[d] * copy.out_strides[d];
    }
    body(in, out);
  }
}

// Strides for a random order of dimensions, sometimes with gaps. Returns the number of elements
// spanned.
int64_t random_strides(Random& random, const Copy& copy, int64_t* strides, bool broadcasts) {
  size_t order[kCopyRank];
  for (size_t d = 0; d < copy.rank; ++d) order[d] = d;
  for (size_t d = copy.rank; d > 1; --d) {
    std::swap(order[d - 1], order[random.whole(0, static_cast<int64_t>(d) - 1)]);
  }
  int64_t stride = random.chance(8) ? 2 : 1;
  for (size_t k = 0; k < copy.rank; ++k) {
    const size_t d = order[k];
    strides[d] = stride;
    if (broadcasts && random.chance(8)) {
      strides[d] = 0;
    } else {
      stride *= std::max<int64_t>(copy.sizes[d], 1) + (random.chance(6) ? random.whole(1, 3) : 0);
    }
  }
  return stride;
}

void check_copy(Copy copy, int64_t in_span, int64_t out_span, Random& random) {
  const size_t size = copy.element_size;
  std::vector<unsigned char> in(static_cast<size_t>(in_span) * size);
  for (unsigned char& byte : in) byte = static_cast<unsigned char>(random.next());
  copy.in = in.data();
  std::vector<unsigned char> expected(static_cast<size_t>(out_span) * size, 0xa5);
  for_each_element(copy, [&](int64_t from, int64_t to) {
    std::memcpy(expected.data() + to * size, in.data() + from * size, size);
  });
  everywhere<unsigned char>(
      out_span * static_cast<int64_t>(size),
      [&](unsigned char* out, Workers* workers) {
        copy.out = out;
        engine::copy(copy, workers);
      },
      [&](const unsigned char* out) {
        CHECK(expected.empty() || std::memcmp(out, expected.data(), expected.size()) == 0);
      });
}

void test_copies() {
  Random random(7);
  for (int round = 0; round < 1500; ++round) {
    Copy copy;
    copy.rank = static_cast<size_t>(random.whole(0, kCopyRank));
    copy.element_size = size_t{1} << random.whole(0, 3);
    int64_t budget = 30000;
    for (size_t d = 0; d < copy.rank; ++d) {
      const int64_t most = std::min<int64_t>(budget, random.chance(3) ? 300 : 20);
      copy.sizes[d] = random.chance(60) ? 0 : random.whole(1, std::max<int64_t>(most, 1));
      budget /= std::max<int64_t>(copy.sizes[d], 1);
    }
    const int64_t in_span = random_strides(random, copy, copy.in_strides, true);
    const int64_t out_span = random_strides(random, copy, copy.out_strides, false);
    check_copy(copy, in_span, out_span, random);
  }
}

// Elements of every magnitude of float16, and beyond. The copy converts them to the other type.
template <typename From, typename To, typename Function>
void check_conversion(Copy copy, Conversion conversion, int64_t in_span, int64_t out_span,
                      Random& random, Function function) {
  std::vector<From> in(static_cast<size_t>(in_span));
  for (From& element : in) {
    const float number = random.real(-1, 1) * std::exp2(static_cast<float>(random.whole(-27, 17)));
    if constexpr (std::is_same_v<From, float>) element = number;
    if constexpr (std::is_same_v<From, plain::Half>) element = plain::narrow_half(number);
    if constexpr (std::is_same_v<From, plain::BFloat>) element = plain::narrow_bfloat(number);
  }
  To unset;
  std::memset(&unset, 0xa5, sizeof(unset));
  std::vector<To> expected(static_cast<size_t>(out_span), unset);
  for_each_element(copy, [&](int64_t from, int64_t to) {
    expected[static_cast<size_t>(to)] = function(in[static_cast<size_t>(from)]);
  });
  copy.in = in.data();
  copy.element_size = sizeof(From);
  copy.conversion = conversion;
  const size_t bytes = expected.size() * sizeof(To);
  everywhere<unsigned char>(
      static_cast<int64_t>(bytes),
      [&](unsigned char* out, Workers* workers) {
        copy.out = out;
        engine::copy(copy, workers);
      },
      [&](const unsigned char* out) {
        CHECK(bytes == 0 || std::memcmp(out, expected.data(), bytes) == 0);
      });
}

void test_conversions() {
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    Copy copy;
    copy.rank = static_cast<size_t>(random.whole(0, 4));
    // Sometimes large enough to be divided among threads.
    for (size_t d = 0; d < copy.rank; ++d) copy.sizes[d] = random.whole(0, round % 50 ? 12 : 40);
    const int64_t in_span = random_strides(random, copy, copy.in_strides, true);
    const int64_t out_span = random_strides(random, copy, copy.out_strides, false);
    check_conversion<plain::Half, float>(copy, Conversion::HalfToFloat, in_span, out_span, random,
                                         [](plain::Half x) { return plain::widen(x); });
    check_conversion<plain::BFloat, float>(copy, Conversion::BFloatToFloat, in_span, out_span,
                                           random, [](plain::BFloat x) { return plain::widen(x); });
    check_conversion<float, plain::Half>(copy, Conversion::FloatToHalf, in_span, out_span, random,
                                         plain::narrow_half);
    check_conversion<float, plain::BFloat>(copy, Conversion::FloatToBFloat, in_span, out_span,
                                           random, plain::narrow_bfloat);
  }
}

// Large enough to be divided among threads.
void test_large_copies() {
  Random random(8);
  for (size_t size : {1, 2, 4, 8}) {
    for (int64_t columns : {3, 64, 517}) {
      Copy copy;
      copy.rank = 3;
      copy.element_size = size;
      const int64_t sizes[] = {3, 200000 / columns, columns};
      const int64_t plane = sizes[1] * sizes[2];
      const int64_t transposed[] = {plane, 1, sizes[1]};
      const int64_t dense[] = {plane, sizes[2], 1};
      std::copy(sizes, sizes + 3, copy.sizes);
      std::copy(transposed, transposed + 3, copy.in_strides);
      std::copy(dense, dense + 3, copy.out_strides);
      check_copy(copy, 3 * plane, 3 * plane, random);
      std::copy(dense, dense + 3, copy.in_strides);
      check_copy(copy, 3 * plane, 3 * plane, random);
    }
  }
}

}  // namespace

int main() {
  test_copies();
  test_conversions();
  test_large_copies();
  return check_result();
}
