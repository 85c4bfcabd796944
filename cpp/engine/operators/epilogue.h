// What products and convolutions do to their results on the way out: bias, clamp, and a tile
// program on blocks that are still in cache.
#pragma once

#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/operators/tile_program.h"

namespace rushlight::engine {

class EpiloguePlan {
 public:
  // `columns` of results; the bias, if there is one, has so many, filled up to whole panels.
  Status prepare(Setup& setup, const EpilogueParameters& parameters, const View* bias, int64_t rows,
                 int64_t columns);
  bool has_residual() const { return residual_ != nullptr; }
  // For one run. `bound` must live until the run is over.
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
