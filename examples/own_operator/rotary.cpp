// example::rotary.out(Tensor x, Tensor cos, Tensor sin, *, Tensor(a!) out) -> Tensor(a!)
//
// Each row of x, [..., length, 2 n], is two halves of n elements, which are turned by the angles of
// the row's position: cos and sin are [length, n]. One pass reads x once and writes it once; the
// decomposed form makes seven tensors of its size.
#include "custom_kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2 1
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

using namespace rushlight::custom;

namespace {

struct Row {
  const float* x;
  const float* cos;
  const float* sin;
  float* out;
};

// Elements from `i` on, one at a time.
void turn_rest(const Row& row, int64_t n, int64_t i) {
  for (; i < n; ++i) {
    const float a = row.x[i], b = row.x[n + i];
    row.out[i] = a * row.cos[i] - b * row.sin[i];
    row.out[n + i] = b * row.cos[i] + a * row.sin[i];
  }
}

#if HAS_AVX2
__attribute__((target("avx2,fma"))) int64_t turn_avx2(const Row& row, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 a = _mm256_loadu_ps(row.x + i), b = _mm256_loadu_ps(row.x + n + i);
    const __m256 cos = _mm256_loadu_ps(row.cos + i), sin = _mm256_loadu_ps(row.sin + i);
    _mm256_storeu_ps(row.out + i, _mm256_fmsub_ps(a, cos, _mm256_mul_ps(b, sin)));
    _mm256_storeu_ps(row.out + n + i, _mm256_fmadd_ps(b, cos, _mm256_mul_ps(a, sin)));
  }
  return i;
}
#endif

void turn(const Row& row, int64_t n) {
  int64_t i = 0;
#if HAS_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx2) i = turn_avx2(row, n);
#elif defined(__aarch64__)
  for (; i + 4 <= n; i += 4) {
    const float32x4_t a = vld1q_f32(row.x + i), b = vld1q_f32(row.x + n + i);
    const float32x4_t cos = vld1q_f32(row.cos + i), sin = vld1q_f32(row.sin + i);
    vst1q_f32(row.out + i, vfmsq_f32(vmulq_f32(a, cos), b, sin));
    vst1q_f32(row.out + n + i, vfmaq_f32(vmulq_f32(b, cos), a, sin));
  }
#endif
  turn_rest(row, n, i);
}

bool is_table(const Tensor& table, int64_t length, int64_t n) {
  return table.dtype() == DType::Float32 && table.rank() == 2 && table.size(0) == length &&
         table.size(1) == n && table.is_contiguous();
}

}  // namespace

RUSHLIGHT_KERNEL(example, rotary_out)
(Context& ctx, const Tensor& x, const Tensor& cos, const Tensor& sin, Tensor& out) {
  if (x.dtype() != DType::Float32) return ctx.fail("x is %s; float32 is allowed", x.dtype_name());
  if (x.rank() < 2 || x.size(x.rank() - 1) % 2 != 0 || !x.is_contiguous()) {
    return ctx.fail("x must have two dimensions or more, the last one even, in row-major order");
  }
  const int64_t length = x.size(x.rank() - 2), n = x.size(x.rank() - 1) / 2;
  if (!is_table(cos, length, n) || !is_table(sin, length, n)) {
    return ctx.fail("cos and sin must be float32 of %lld x %lld, in row-major order",
                    static_cast<long long>(length), static_cast<long long>(n));
  }
  if (Status s = ctx.resize_like(out, x); !s.ok()) return s;
  const float *from = x.data<float>(), *c = cos.data<float>(), *s = sin.data<float>();
  float* to = out.data<float>();
  const int64_t rows = n > 0 ? x.numel() / (2 * n) : 0;
  ctx.parallel(rows, 4096 / (n + 1) + 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i % length * n;
      turn({from + i * 2 * n, c + at, s + at, to + i * 2 * n}, n);
    }
  });
  return {};
}

// The sizes of its result are those of x, so that the cpu backend may call it between its
// operators.
RUSHLIGHT_KERNEL_LIBRARY(in_delegates(RUSHLIGHT_OP(example, rotary_out)))
