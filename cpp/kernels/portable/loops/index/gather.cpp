#include "rushlight/kernels/portable/loops/index/gather.h"

namespace rushlight::kernels::RL_ISA {
namespace {

template <typename T>
void add_weighted(const void* data_in, const int32_t* offsets, const void* weights, size_t n,
                  void* sums) {
  const T* data = static_cast<const T*>(data_in);
  const T* w = static_cast<const T*>(weights);
  T* y = static_cast<T*>(sums);
  RL_VECTORIZE
  for (size_t i = 0; i < n; ++i) {
    const T value = data[offsets[i] < 0 ? 0 : offsets[i]];
    y[i] += (offsets[i] < 0 ? static_cast<T>(0) : value) * w[i];
  }
}

}  // namespace

const GatherLoops gather_loops = {{add_weighted<float>, add_weighted<double>}};

}  // namespace rushlight::kernels::RL_ISA
