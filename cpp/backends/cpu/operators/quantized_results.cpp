#include "rushlight/backends/cpu/operators/quantized_results.h"

#include "rushlight/backends/cpu/operators/requantize.h"

namespace rushlight::cpu {

Status ResultsPlan::prepare(Setup& setup, const Requantize& requantize,
                            const FinishParameters& finish, int64_t rows, int64_t columns,
                            int64_t step) {
  start_ = setup.input(2);
  multipliers_ = setup.input(3);
  out_ = setup.output(0);
  RL_TRY(check_columns(setup, start_, columns));
  RL_TRY(check_columns(setup, multipliers_, columns));
  results_.requantize = requantize;
  results_.step = step;
  if (out_->dtype == DType::Float32) return finish_.prepare(setup, finish, nullptr, rows, columns);
  if (finish.clamped || finish.program.present() || finish.residual >= 0) {
    return setup.refuse("what follows its results is for float32");
  }
  return check_requantize(setup, requantize);
}

QuantizedResults ResultsPlan::bind(const Frame& frame, BoundTiles& bound) const {
  QuantizedResults results = results_;
  results.start = frame.at<int32_t>(start_);
  results.multipliers = frame.at(multipliers_);
  if (out_->dtype == DType::Float32) {
    results.floats = frame.at(out_);
    results.finish = finish_.bind(frame, bound);
  } else {
    results.bytes = frame.at<uint8_t>(out_);
  }
  return results;
}

Status check_result_dtypes(const Setup& setup) {
  const View* out = setup.output(0);
  const bool has_numbers = out != nullptr && out->dtype == DType::Float32;
  return setup.check_dtypes({DType::UInt8, DType::Int8, DType::Int32, DType::Float32},
                            {has_numbers ? DType::Float32 : DType::UInt8});
}

Status check_columns(const Setup& setup, const View* view, int64_t columns) {
  if (is_dense(*view) && view->numel == panels_of(columns) * kPanel) return {};
  return setup.refuse("what belongs to its columns has other sizes");
}

}  // namespace rushlight::cpu
