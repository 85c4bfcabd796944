// The basic parts: text, numbers, tensors, bump allocation.
#include <cfloat>
#include <cmath>
#include <cstdarg>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/shape_text.h"
#include "rushlight/core/tensor.h"
#include "rushlight/platform/platform.h"

using namespace rushlight;

namespace {

// Compares the results of format_to and printf for the same arguments.
[[gnu::format(printf, 1, 2)]] bool like_printf(const char* format, ...) {
  char ours[200];
  char theirs[200];
  std::va_list args;
  va_start(args, format);
  std::va_list copy;
  va_copy(copy, args);
  const size_t n = format_to(ours, sizeof(ours), format, args);
  std::vsnprintf(theirs, sizeof(theirs), format, copy);
  va_end(copy);
  va_end(args);
  const bool same = std::strcmp(ours, theirs) == 0 && n == std::strlen(ours);
  if (!same) std::fprintf(stderr, "'%s' is not '%s'\n", ours, theirs);
  return same;
}

void test_format() {
  CHECK(like_printf("plain, %%, %s, %c, %.*s", "text", 'x', 2, "abc"));
  CHECK(like_printf("%d %d %d %u %x", 0, INT32_MIN, INT32_MAX, UINT32_MAX, 0xbeefu));
  CHECK(like_printf("%ld %lld %lu %llu", -5L, static_cast<long long>(INT64_MIN), 5UL, ~0ULL));
  CHECK(like_printf("%zu", SIZE_MAX));
  const double values[] = {0.0,        1.0,       -1.5,      0.1,    100000.0, 1e6,
                           123456.0,   1234567.0, 1e-4,      1e-5,   9999995,  1e300,
                           -1e-300,    DBL_MAX,   DBL_MIN,   5e-324, INFINITY, -INFINITY,
                           3.14159265, 0.999999,  0.9999999, 2.5e-3};
  for (double v : values) CHECK(like_printf("%g", v));
  CHECK(like_printf("%g", std::nan("")));
  // On other systems the last digit may differ by one, so the numbers are compared, not the text.
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const double v =
        std::ldexp(static_cast<double>(random() % 1000000), static_cast<int>(random() % 600) - 300);
    Message message;
    (void)message.fail(Code::Internal, "%g", v);
    CHECK(std::fabs(std::strtod(message.text(), nullptr) - v) <= 1.1e-5 * v);
  }
}

void test_format_cuts() {
  Message message;
  char tail[2 * Message::kCapacity];
  std::memset(tail, 'x', sizeof(tail) - 1);
  tail[sizeof(tail) - 1] = '\0';
  CHECK(message.fail(Code::NotFound, "%s", tail).code() == Code::NotFound);
  CHECK(std::strlen(message.text()) == Message::kCapacity - 1);
  message.prepend("forward: ");
  CHECK(std::strncmp(message.text(), "forward: xxx", 12) == 0);
  CHECK(std::strlen(message.text()) == Message::kCapacity - 1);
  message.prepend("%s", tail);
  CHECK(std::strlen(message.text()) == Message::kCapacity - 1 && message.text()[0] == 'x');
  message.append("more");
  CHECK(std::strlen(message.text()) == Message::kCapacity - 1);
  message.clear();
  message.append("%d", 1);
  message.append(", %d", 2);
  message.prepend("%s: ", "n");
  CHECK(std::strcmp(message.text(), "n: 1, 2") == 0);
  const int32_t sizes[] = {2, 3};
  CHECK(std::strcmp(ShapeText({sizes, 2}).text(), "(2, 3)") == 0);
  CHECK(std::strcmp(ShapeText({sizes, 1}).text(), "(2,)") == 0);
  CHECK(std::strcmp(ShapeText({}).text(), "()") == 0);
}

void test_scalars() {
  EValue value;
  CHECK(value.is_none());
  const struct {
    double from;
    int64_t to;
  } cases[] = {{1.9, 1},
               {-1.9, -1},
               {1e300, INT64_MAX},
               {-1e300, INT64_MIN},
               {NAN, 0},
               {INFINITY, INT64_MAX},
               {-INFINITY, INT64_MIN},
               {9223372036854775808.0, INT64_MAX},
               {-9223372036854775808.0, INT64_MIN}};
  for (const auto& c : cases) {
    value.set_double(c.from);
    CHECK(value.to_int() == c.to);
  }
  value.set_int(-3);
  CHECK(value.to_double() == -3.0 && value.to_bool() && value.is_scalar());
  value.set_bool(true);
  CHECK(value.to_int() == 1 && value.tag == Tag::Bool);
}

void test_dtypes() {
  CHECK(element_size(DType::Float32) == 4 && element_size(DType::Complex128) == 16);
  CHECK(element_size(DType::Bool) == 1 && element_size(DType::UInt64) == 8);
  for (int number : {-1, 18, 19, 20, 21, 30, 127}) {
    CHECK(element_size(static_cast<DType>(number)) == 0);
    CHECK(std::strcmp(dtype_name(static_cast<DType>(number)), "?") == 0);
  }
  CHECK(std::strcmp(dtype_name(DType::BFloat16), "bfloat16") == 0);
}

void test_shapes() {
  int64_t n = -1;
  const int32_t cube[] = {2, 3, 4};
  CHECK(count_elements({cube, 3}, &n) && n == 24);
  CHECK(count_elements({}, &n) && n == 1);
  const int32_t empty[] = {INT32_MAX, 0, INT32_MAX};
  CHECK(count_elements({empty, 3}, &n) && n == 0);
  const int32_t huge[] = {INT32_MAX, INT32_MAX, INT32_MAX, 0};
  CHECK(!count_elements({huge, 3}, &n) && !count_elements({huge, 4}, &n));
  const int32_t negative[] = {2, -1};
  CHECK(!count_elements({negative, 2}, &n));

  const uint8_t good[] = {2, 0, 1}, twice[] = {0, 0, 1}, beyond[] = {0, 1, 3};
  CHECK(is_permutation(good, 3) && !is_permutation(twice, 3) && !is_permutation(beyond, 3));
  CHECK(is_permutation(nullptr, 0));

  const int32_t image[] = {1, 2, 3, 4};
  const uint8_t channels_last[] = {0, 2, 3, 1};
  int32_t strides[4];
  CHECK(strides_of({image, 4}, channels_last, strides));
  const int32_t expected[] = {24, 1, 8, 2};
  CHECK(std::memcmp(strides, expected, sizeof(strides)) == 0);
  const int32_t long_rows[] = {1, INT32_MAX, INT32_MAX};
  const uint8_t rows[] = {0, 1, 2};
  CHECK(!strides_of({long_rows, 3}, rows, strides));
}

struct Made {
  int32_t sizes[4];
  int32_t strides[4];
  Tensor tensor;
};

void make(Made* made, std::initializer_list<int32_t> sizes, const uint8_t* dim_order, void* data) {
  size_t rank = 0;
  for (int32_t size : sizes) made->sizes[rank++] = size;
  made->tensor.sizes = made->sizes;
  made->tensor.strides = made->strides;
  made->tensor.dim_order = dim_order;
  made->tensor.rank = static_cast<uint8_t>(rank);
  made->tensor.data = data;
  CHECK(count_elements(made->tensor.shape(), &made->tensor.numel));
  CHECK(strides_of(made->tensor.shape(), dim_order, made->strides));
  made->tensor.capacity = made->tensor.numel;
}

void test_tensors() {
  const uint8_t kRows[] = {0, 1, 2, 3}, kLast[] = {0, 2, 3, 1};
  float a[24], b[24];
  for (int i = 0; i < 24; ++i) a[i] = static_cast<float>(i);
  Made rows, last;
  make(&rows, {1, 2, 3, 4}, kRows, a);
  make(&last, {1, 2, 3, 4}, kLast, b);
  CHECK(rows.tensor.is_contiguous() && !last.tensor.is_contiguous());
  CHECK(!same_layout(rows.tensor, last.tensor) && same_layout(rows.tensor, rows.tensor));
  copy_elements(rows.tensor, last.tensor);
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 12; ++i) CHECK(b[i * 2 + c] == a[c * 12 + i]);
  }
  Made thin_rows, thin_last;
  make(&thin_rows, {2, 1, 3, 4}, kRows, a);
  make(&thin_last, {2, 1, 3, 4}, kLast, b);
  CHECK(same_layout(thin_rows.tensor, thin_last.tensor) && thin_last.tensor.is_contiguous());

  Tensor& t = rows.tensor;
  const int32_t same[] = {1, 2, 3, 4}, fewer[] = {1, 2, 3, 2}, more[] = {1, 2, 3, 5};
  CHECK(t.resize({same, 4}).ok());
  CHECK(t.resize({fewer, 4}).code() == Code::NotSupported && t.sizes[3] == 4);  // static
  t.dynamism = Dynamism::Bounded;
  CHECK(t.resize({fewer, 4}).ok() && t.numel == 12 && t.strides[2] == 2);
  CHECK(t.resize({more, 4}).code() == Code::NotSupported && t.numel == 12);
  CHECK(t.resize({same, 3}).code() == Code::NotSupported);
  const int32_t bad[] = {1, 2, 3, -4};
  CHECK(t.resize({bad, 4}).code() == Code::NotSupported && t.sizes[3] == 2);
  CHECK(t.resize({same, 4}).ok() && t.nbytes() == 96);
  t.read_only = true;
  CHECK(t.resize({same, 4}).code() == Code::NotSupported);
}

void test_allocator() {
  alignas(64) uint8_t memory[256];
  Allocator allocator(memory + 1, 200);
  void* first = allocator.allocate(10);
  CHECK(reinterpret_cast<uintptr_t>(first) % Allocator::kAlignment == 0);
  void* second = allocator.allocate(1, 64);
  CHECK(second == memory + 64);
  CHECK(allocator.allocate(137) == nullptr && allocator.allocate(SIZE_MAX) == nullptr);
  CHECK(allocator.allocate_array<uint64_t>(SIZE_MAX / 4) == nullptr);
  CHECK(allocator.left(1) == 136 && allocator.allocate(136, 1) == memory + 65);
  CHECK(allocator.left() == 0);
  allocator.reset();
  CHECK(allocator.used() == 0 && allocator.allocate(100) == first);
  Allocator none;
  CHECK(none.allocate(0) == nullptr && none.left() == 0);
}

void test_platform() {
  const uint64_t before = now_ns();
  CHECK(now_ns() >= before && before > 0);
  static int lines = 0;
  Platform platform = {};
  platform.log = [](LogLevel level, const char* text, size_t length) {
    lines += level == LogLevel::Warning && std::strncmp(text, "hello", length) == 0;
  };
  set_platform(platform);
  log_line(LogLevel::Warning, "hello", 5);
  CHECK(lines == 1 && now_ns() >= before);
  // The pages at both ends are shared with other memory.
  constexpr size_t kBytes = size_t{1} << 20;
  std::vector<uint8_t> memory(kBytes + 2, 7);
  release_pages(memory.data() + 1, memory.data() + 1 + kBytes);
  CHECK(memory.front() == 7 && memory.back() == 7);
  static void* released[2] = {};
  platform.release_pages = [](void* begin, void* end) {
    released[0] = begin;
    released[1] = end;
  };
  set_platform(platform);
  release_pages(memory.data(), memory.data() + 5);
  CHECK(released[0] == memory.data() && released[1] == memory.data() + 5);
}

}  // namespace

int main() {
  test_format();
  test_format_cuts();
  test_scalars();
  test_dtypes();
  test_shapes();
  test_tensors();
  test_allocator();
  test_platform();
  return rushlight::test::check_result();
}
