// How products and convolutions of uint8 store their sums: as uint8, or as float32 with an
// epilogue.
#pragma once

#include "rushlight/engine/kernels/products/dot_product.h"
#include "rushlight/engine/operators/epilogue.h"

namespace rushlight::engine {

class ResultsPlan {
 public:
  // Inputs 2 and 3 of the node are what each column's sum starts from and its multiplier, filled up
  // to whole panels; output 0 has `rows` of `columns`, `stride` apart. `parameters` are the
  // parameters of a product or convolution.
  template <typename Parameters>
  Status prepare(Setup& setup, const Parameters& parameters, int64_t rows, int64_t columns,
                 int64_t stride) {
    results_.requantize = parameters.requantize;
    results_.stride = stride;
    RL_TRY(prepare_columns(setup, columns));
    return out_->dtype == DType::Float32
               ? prepare_floats(setup, parameters.epilogue, parameters.residual, rows, columns)
               : prepare_bytes(setup, parameters.epilogue, parameters.residual, rows, columns);
  }
  bool has_residual() const { return residual_ != nullptr; }
  // For one run. `bound` must live until the run is over.
  QuantizedResults bind(const Frame& frame, BoundTiles& bound) const;

 private:
  Status prepare_columns(const Setup& setup, int64_t columns);
  Status prepare_floats(Setup& setup, const EpilogueParameters& epilogue,
                        const QuantizedResidualParameters& residual, int64_t rows, int64_t columns);
  Status prepare_bytes(const Setup& setup, const EpilogueParameters& epilogue,
                       const QuantizedResidualParameters& residual, int64_t rows, int64_t columns);

  const View* start_ = nullptr;
  const View* multipliers_ = nullptr;
  const View* out_ = nullptr;
  const View* residual_ = nullptr;
  QuantizedResults results_;
  EpiloguePlan epilogue_;
};

// Ok if the node has uint8 rows, int8 weights, and the inputs and output that ResultsPlan needs.
Status check_result_dtypes(const Setup& setup);

// Ok if sums of so many terms fit 32 bits.
Status check_terms(const Setup& setup, int64_t terms);

// Ok if there is one element for each column, filled up to whole panels.
Status check_columns(const Setup& setup, const char* name, const View& view, int64_t columns);

}  // namespace rushlight::engine
