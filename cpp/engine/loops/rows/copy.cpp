#include "rushlight/engine/loops/rows/copy.h"

#include <cstring>

#include "rushlight/kernel/loops/half.h"
#include "rushlight/kernel/loops/vec.h"

namespace rushlight::engine::RL_ISA {
using namespace ::rushlight::kernels::RL_ISA;

namespace {

// --- runs ---------------------------------------------------------------------------------------

constexpr int64_t kPiece = kLanes * 4;
constexpr int64_t kLongRun = 1024;  // bytes from which the C library is faster

// A file may place a copy's source and target so that they overlap: no loop here relies on the
// opposite.
template <int64_t N>
void piece(const char* in, char* out) {
  char bytes[N];
  std::memcpy(bytes, in, N);
  std::memcpy(out, bytes, N);
}

// Copies N to 2 * N bytes as two pieces that may overlap.
template <int64_t N>
void ends(const char* in, char* out, int64_t bytes) {
  char first[N];
  char last[N];
  std::memcpy(first, in, N);
  std::memcpy(last, in + bytes - N, N);
  std::memcpy(out, first, N);
  std::memcpy(out + bytes - N, last, N);
}

void short_run(const char* in, char* out, int64_t bytes) {
  if (bytes >= 32) return ends<32>(in, out, bytes);
  if (bytes >= 16) return ends<16>(in, out, bytes);
  if (bytes >= 8) return ends<8>(in, out, bytes);
  if (bytes >= 4) return ends<4>(in, out, bytes);
  for (int64_t i = 0; i < bytes; ++i) out[i] = in[i];
}

void runs(const void* in, int64_t in_stride, void* out, int64_t out_stride, int64_t rows,
          int64_t bytes) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  for (int64_t r = 0; r < rows; ++r, from += in_stride, to += out_stride) {
    if (bytes >= kLongRun) {
      std::memmove(to, from, static_cast<size_t>(bytes));
    } else if (bytes < 64) {
      short_run(from, to, bytes);
    } else {
      for (int64_t i = 0; i + kPiece <= bytes; i += kPiece) piece<kPiece>(from + i, to + i);
      piece<kPiece>(from + bytes - kPiece, to + bytes - kPiece);
    }
  }
}

// --- lines --------------------------------------------------------------------------------------

template <typename T>
void line(const void* in, int64_t in_stride, void* out, int64_t out_stride, int64_t n) {
  const char* from = static_cast<const char*>(in);
  char* to = static_cast<char*>(out);
  T value;
  if (in_stride == 0 && out_stride == 1) {
    std::memcpy(&value, from, sizeof value);
    for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * sizeof value, &value, sizeof value);
    return;
  }
  const int64_t from_stride = in_stride * static_cast<int64_t>(sizeof value);
  const int64_t to_stride = out_stride * static_cast<int64_t>(sizeof value);
  for (int64_t i = 0; i < n; ++i, from += from_stride, to += to_stride) {
    std::memcpy(&value, from, sizeof value);
    std::memcpy(to, &value, sizeof value);
  }
}

// --- transpositions -----------------------------------------------------------------------------

// A vector of N elements; N of them form a square that log2(N) perfect shuffles transpose.
template <typename T, int64_t N>
struct Square {
  typedef T Line __attribute__((vector_size(N * sizeof(T))));
  typedef T Memory __attribute__((vector_size(N * sizeof(T)), aligned(1), may_alias));
};
using Bytes = Square<uint8_t, 16>::Line;
using Pairs = Square<uint16_t, 8>::Line;
using Words = Square<float, 4>::Line;
using Doubles = Square<uint64_t, 2>::Line;

inline Bytes low(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes high(Bytes a, Bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
inline Pairs low(Pairs a, Pairs b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
inline Pairs high(Pairs a, Pairs b) {
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
inline Words low(Words a, Words b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline Words high(Words a, Words b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
inline Doubles low(Doubles a, Doubles b) { return __builtin_shufflevector(a, b, 0, 2); }
inline Doubles high(Doubles a, Doubles b) { return __builtin_shufflevector(a, b, 1, 3); }
#if defined(__AVX__)
inline Vec low(Vec a, Vec b) { return interleave_low(a, b); }
inline Vec high(Vec a, Vec b) { return interleave_high(a, b); }
#endif

template <typename T, int64_t N>
inline void square(const T* in, int64_t in_stride, T* out, int64_t out_stride) {
  using Line = typename Square<T, N>::Line;
  using Memory = typename Square<T, N>::Memory;
  Line lines[N];
#pragma GCC unroll 16
  for (int64_t i = 0; i < N; ++i) lines[i] = *reinterpret_cast<const Memory*>(in + i * in_stride);
#pragma GCC unroll 4
  for (int64_t round = 1; round < N; round *= 2) {
    Line next[N];
#pragma GCC unroll 8
    for (int64_t i = 0; i < N / 2; ++i) {
      next[2 * i] = low(lines[i], lines[i + N / 2]);
      next[2 * i + 1] = high(lines[i], lines[i + N / 2]);
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < N; ++i) lines[i] = next[i];
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < N; ++i) *reinterpret_cast<Memory*>(out + i * out_stride) = lines[i];
}

// At the end, the last square is moved back and overlaps elements that are already copied.
template <typename T, int64_t N>
void by_squares(const T* in, int64_t in_stride, T* out, int64_t out_stride, int64_t rows,
                int64_t columns) {
  for (int64_t i = 0; i < rows; i += N) {
    const int64_t row = i + N <= rows ? i : rows - N;
    for (int64_t j = 0; j < columns; j += N) {
      const int64_t column = j + N <= columns ? j : columns - N;
      square<T, N>(in + column * in_stride + row, in_stride, out + row * out_stride + column,
                   out_stride);
    }
  }
}

template <typename T>
void transpose(const void* from, int64_t in_stride, void* to, int64_t out_stride, int64_t rows,
               int64_t columns) {
  constexpr int64_t kSmall = 16 / static_cast<int64_t>(sizeof(T));
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  const int64_t least = rows < columns ? rows : columns;
#if defined(__AVX__)
  if constexpr (sizeof(T) == 4) {
    if (least >= kLanes)
      return by_squares<T, kLanes>(in, in_stride, out, out_stride, rows, columns);
  }
#endif
  if (least >= kSmall) return by_squares<T, kSmall>(in, in_stride, out, out_stride, rows, columns);
  // The longer dimension is the inner loop, so that few lines are read or written at a time.
  constexpr int64_t kSize = sizeof(T);
  if (rows >= columns) {
    for (int64_t i = 0; i < rows; ++i) line<T>(in + i, in_stride, out + i * out_stride, 1, columns);
  } else {
    for (int64_t j = 0; j < columns; ++j) {
      const char* const source = static_cast<const char*>(from) + j * in_stride * kSize;
      line<T>(source, 1, out + j, out_stride, rows);
    }
  }
}

// --- conversions --------------------------------------------------------------------------------

struct ToHalf {
  using From = float;
  using To = Half;
  static To one(float x) { return narrow_half(x); }
  static void all(const float* in, Half* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = narrow_half(in[i]);
  }
};
struct ToBFloat {
  using From = float;
  using To = BFloat;
  static To one(float x) { return narrow_bfloat(x); }
  static void all(const float* in, BFloat* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = narrow_bfloat(in[i]);
  }
};
template <typename T>
struct ToFloat {
  using From = T;
  using To = float;
  static To one(T x) { return widen(x); }
  static void all(const T* in, float* out, int64_t n) {
    widen_all(in, out, static_cast<size_t>(n));
  }
};

template <typename C>
void convert(const void* in, int64_t in_stride, void* out, int64_t out_stride, int64_t n) {
  const auto* from = static_cast<const typename C::From*>(in);
  auto* to = static_cast<typename C::To*>(out);
  if (in_stride == 1 && out_stride == 1) return C::all(from, to, n);
  for (int64_t i = 0; i < n; ++i) to[i * out_stride] = C::one(from[i * in_stride]);
}

}  // namespace

const CopyLoops copy_loops = {
    runs,
    {line<uint8_t>, line<uint16_t>, line<uint32_t>, line<uint64_t>},
    {transpose<uint8_t>, transpose<uint16_t>, transpose<float>, transpose<uint64_t>},
    {nullptr, convert<ToFloat<Half>>, convert<ToHalf>, convert<ToFloat<BFloat>>, convert<ToBFloat>},
};

}  // namespace rushlight::engine::RL_ISA
