// What the machine reaches at most: see engine/kernels/products/peak.h.
#include <nanobind/nanobind.h>

#include <vector>

#include "bindings.h"
#include "rushlight/engine/kernels/products/peak.h"
#include "rushlight/module/thread_pool.h"

namespace rushlight::python {
namespace {

constexpr size_t kFloats = size_t{64} << 20;  // 256 MiB, more than a cache of today holds

}  // namespace

void init_peaks(nb::module_& m) {
  m.def("usable_cores", &usable_cores);
  m.def(
      "measure_peaks",
      [](size_t threads) {
        double flops = 0;
        double integer_ops = 0;
        double bandwidth = 0;
        {
          nb::gil_scoped_release release;
          PoolWorkers workers(threads);
          workers.start();
          flops = engine::measure_flops(&workers);
          integer_ops = engine::measure_integer_ops(&workers);
          const std::vector<float> data(kFloats, 1.0f);
          bandwidth = engine::measure_bandwidth(data.data(), data.size(), &workers);
        }
        return nb::make_tuple(flops, integer_ops, bandwidth);
      },
      nb::arg("threads"));
}

}  // namespace rushlight::python
