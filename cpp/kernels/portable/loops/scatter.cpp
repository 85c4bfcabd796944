#include "rushlight/kernels/portable/loops/scatter.h"

#include "rushlight/kernels/portable/loops/half.h"

namespace rushlight::kernels::RL_ISA {
namespace {

struct Truth {
  uint8_t byte;
};

// Integers wrap around: they are added as unsigned numbers.
uint8_t plus(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a + b); }
uint16_t plus(uint16_t a, uint16_t b) { return static_cast<uint16_t>(a + b); }
uint32_t plus(uint32_t a, uint32_t b) { return a + b; }
uint64_t plus(uint64_t a, uint64_t b) { return a + b; }
float plus(float a, float b) { return a + b; }
double plus(double a, double b) { return a + b; }
Half plus(Half a, Half b) { return narrow_half(widen(a) + widen(b)); }
BFloat plus(BFloat a, BFloat b) { return narrow_bfloat(widen(a) + widen(b)); }
Truth plus(Truth a, Truth b) { return {static_cast<uint8_t>((a.byte | b.byte) != 0)}; }

template <typename T>
void add(void* table, const int64_t* offsets, size_t n, const void* values, int64_t step) {
  T* to = static_cast<T*>(table);
  const T* from = static_cast<const T*>(values);
  for (size_t k = 0; k < n; ++k) {
    to[offsets[k]] = plus(to[offsets[k]], from[static_cast<int64_t>(k) * step]);
  }
}

}  // namespace

const ScatterLoops scatter_loops = {
    {add<uint8_t>, add<uint8_t>, add<uint16_t>, add<uint32_t>, add<uint64_t>, add<Half>, add<float>,
     add<double>, nullptr, nullptr, nullptr, add<Truth>, nullptr, nullptr, nullptr, add<BFloat>},
};

}  // namespace rushlight::kernels::RL_ISA
