#include "rushlight/kernels/portable/loops/elementwise/glu.h"

#include "rushlight/kernel/loops/vec_math.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename T>
void glu(const void* x_in, const void* gate_in, size_t n, void* out) {
  const T* x = static_cast<const T*>(x_in);
  const T* gate = static_cast<const T*>(gate_in);
  T* y = static_cast<T*>(out);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * vsigmoid(gate[i]);
}

}  // namespace

const GluLoops glu_loops = {{glu<float>, glu<double>}};

}  // namespace rushlight::kernels::RL_ISA
