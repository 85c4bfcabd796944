#include "rushlight/engine/operators/epilogue.h"

namespace rushlight::engine {
namespace {

void run_block(const void* data, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  run_tile_block(static_cast<const BoundTiles*>(data)->run, row, rows, column, columns);
}

}  // namespace

Status EpiloguePlan::prepare(Setup& setup, const EpilogueParameters& parameters, const View* bias,
                             int64_t rows, int64_t columns) {
  if (bias != nullptr && (!is_dense(*bias) || bias->numel != panels_of(columns) * kPanel)) {
    return setup.refuse("its bias has other sizes");
  }
  bias_ = bias;
  clamped_ = parameters.clamped;
  low_ = parameters.low;
  high_ = parameters.high;
  if (parameters.residual >= 0) {
    residual_ = setup.value(static_cast<size_t>(parameters.residual));
    const bool fits = residual_ != nullptr && residual_->dtype == DType::Float32 &&
                      residual_->rank == 2 && residual_->sizes[0] == rows &&
                      residual_->sizes[1] == columns &&
                      (residual_->strides[1] == 1 || columns <= 1);
    if (!fits) return setup.refuse("what is added to its results has other sizes, or gaps");
  }
  if (!parameters.program.present()) return {};
  RL_TRY(tiles_.prepare(setup, parameters.program));
  const int64_t* sizes = tiles_.sizes();
  if (sizes[0] != 1 || sizes[1] != 1 || sizes[2] != rows || sizes[3] != columns) {
    return setup.refuse("what follows its results has other sizes");
  }
  return {};
}

Epilogue EpiloguePlan::bind(const Frame& frame, BoundTiles& bound) const {
  Epilogue epilogue;
  epilogue.bias = frame.at(bias_);
  if (residual_ != nullptr) {
    epilogue.residual = frame.at(residual_);
    epilogue.residual_stride = residual_->strides[0];
  }
  if (clamped_) {
    epilogue.low = low_;
    epilogue.high = high_;
  }
  if (!tiles_.empty()) {
    tiles_.bind(frame, bound);
    epilogue.block = run_block;
    epilogue.data = &bound;
  }
  return epilogue;
}

}  // namespace rushlight::engine
