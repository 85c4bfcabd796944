// What products and convolutions of bytes make of their sums: bytes, or float32 with a finish.
#pragma once

#include "rushlight/backends/cpu/kernels/dot_product.h"
#include "rushlight/backends/cpu/operators/finish.h"

namespace rushlight::cpu {

class ResultsPlan {
 public:
  // Inputs 2 and 3 of the step are what each column's sum starts from and its multiplier, filled up
  // to whole panels; output 0 has `rows` of `columns`, `step` apart.
  Status prepare(Setup& setup, const Requantize& requantize, const FinishParameters& finish,
                 int64_t rows, int64_t columns, int64_t step);
  // For one run. `bound` must live until the run is over.
  QuantizedResults bind(const Frame& frame, BoundTiles& bound) const;

 private:
  const View* start_ = nullptr;
  const View* multipliers_ = nullptr;
  const View* out_ = nullptr;
  QuantizedResults results_;
  FinishPlan finish_;
};

// Ok if the step has what ResultsPlan needs, and bytes and weights before it.
Status check_result_dtypes(const Setup& setup);

// Ok if there is one element for each column, filled up to whole panels.
Status check_columns(const Setup& setup, const View* view, int64_t columns);

}  // namespace rushlight::cpu
