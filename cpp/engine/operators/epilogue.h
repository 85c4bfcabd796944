// The epilogue of products and convolutions: bias, residual, clamp, and a tile program on blocks of
// results that are still in cache.
#pragma once

#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/operators/tile_program.h"

namespace rushlight::engine {

// Reads the rows of a product's input and result, of which there must be as many.
Status read_product_rows(const Setup& setup, const View& in, const View& out, Rows* in_rows,
                         Rows* out_rows);

// Ok if value `number` is of that dtype and [rows, columns], with rows without gaps.
Status check_residual(const Setup& setup, int64_t number, DType dtype, int64_t rows,
                      int64_t columns);

class EpiloguePlan {
 public:
  // `bias` may be nullptr; otherwise it has one element for each column, filled up to whole panels.
  Status prepare(Setup& setup, const EpilogueParameters& parameters, const View* bias, int64_t rows,
                 int64_t columns);
  bool has_residual() const { return residual_ != nullptr; }
  // The epilogue with the addresses of one run. `bound` must outlive the run.
  Epilogue bind(const Frame& frame, BoundTiles& bound) const;

 private:
  const View* bias_ = nullptr;
  const View* residual_ = nullptr;
  bool clamped_ = false;
  float low_ = 0;
  float high_ = 0;
  TilePlan tiles_;
};

}  // namespace rushlight::engine
