#include "rushlight/engine/operators/epilogue.h"

namespace rushlight::engine {
namespace {

void run_block(const void* data, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  run_tile_block(static_cast<const BoundTiles*>(data)->run, row, rows, column, columns);
}

}  // namespace

Status read_product_rows(const Setup& setup, const View& in, const View& out, Rows* in_rows,
                         Rows* out_rows) {
  RL_TRY(setup.read_rows("its input", in, in_rows));
  RL_TRY(setup.read_rows("its result", out, out_rows));
  if (in_rows->count == out_rows->count) return {};
  return setup.refuse("its input has %lld rows and its result %lld: they must be equal",
                      static_cast<long long>(in_rows->count),
                      static_cast<long long>(out_rows->count));
}

Status check_residual(const Setup& setup, int64_t number, DType dtype, int64_t rows,
                      int64_t columns) {
  const View* residual = setup.value(static_cast<size_t>(number));
  if (residual == nullptr) {
    return setup.refuse("its residual is value %lld, which is not in the graph",
                        static_cast<long long>(number));
  }
  if (residual->dtype != dtype) {
    return setup.refuse("its residual is %s, but must be %s", dtype_name(residual->dtype),
                        dtype_name(dtype));
  }
  if (residual->rank == 2 && residual->sizes[0] == rows && residual->sizes[1] == columns &&
      (residual->strides[1] == 1 || columns <= 1)) {
    return {};
  }
  return setup.refuse(
      "its residual has sizes %s and strides %s, but must have (%lld, %lld), with rows without "
      "gaps",
      text_of(*residual).text(), text_of(residual->strides, residual->rank).text(),
      static_cast<long long>(rows), static_cast<long long>(columns));
}

Status EpiloguePlan::prepare(Setup& setup, const EpilogueParameters& parameters, const View* bias,
                             int64_t rows, int64_t columns) {
  if (bias != nullptr) RL_TRY(setup.check_elements("its bias", *bias, panels_of(columns) * kPanel));
  bias_ = bias;
  clamped_ = parameters.clamped;
  low_ = parameters.low;
  high_ = parameters.high;
  if (parameters.residual >= 0) {
    residual_ = setup.value(static_cast<size_t>(parameters.residual));
    RL_TRY(check_residual(setup, parameters.residual, DType::Float32, rows, columns));
  }
  if (!parameters.program.present()) return {};
  RL_TRY(tiles_.prepare(setup, parameters.program));
  const int64_t* sizes = tiles_.sizes();
  if (sizes[0] != 1 || sizes[1] != 1 || sizes[2] != rows || sizes[3] != columns) {
    return setup.refuse("its epilogue's program has sizes %s, but its results (1, 1, %lld, %lld)",
                        text_of(sizes, kTileRank).text(), static_cast<long long>(rows),
                        static_cast<long long>(columns));
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
