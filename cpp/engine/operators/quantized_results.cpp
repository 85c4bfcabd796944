#include "rushlight/engine/operators/quantized_results.h"

#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {

Status ResultsPlan::prepare_columns(const Setup& setup, int64_t columns) {
  start_ = setup.input(2);
  multipliers_ = setup.input(3);
  out_ = setup.output(0);
  RL_TRY(check_columns(setup, "its initial sums", *start_, columns));
  return check_columns(setup, "its multipliers", *multipliers_, columns);
}

Status ResultsPlan::prepare_floats(Setup& setup, const EpilogueParameters& epilogue,
                                   const QuantizedResidualParameters& residual, int64_t rows,
                                   int64_t columns) {
  if (residual.value >= 0) {
    return setup.refuse("its results are float32, but its residual is added to uint8");
  }
  return epilogue_.prepare(setup, epilogue, nullptr, rows, columns);
}

Status ResultsPlan::prepare_bytes(const Setup& setup, const EpilogueParameters& epilogue,
                                  const QuantizedResidualParameters& residual, int64_t rows,
                                  int64_t columns) {
  if (epilogue.clamped || epilogue.program.present() || epilogue.residual >= 0) {
    return setup.refuse("its results are uint8, but its epilogue is for float32");
  }
  RL_TRY(check_requantize(setup, results_.requantize));
  if (residual.value < 0) return {};
  RL_TRY(check_residual(setup, residual.value, DType::UInt8, rows, columns));
  residual_ = setup.value(static_cast<size_t>(residual.value));
  if (residual.sum.kind == QuantizedBinaryKind::Multiply) {
    return setup.refuse("its residual is multiplied, but it can only be added or subtracted");
  }
  results_.residual_stride = residual_->strides[0];
  return read_binary(setup, residual.sum, &results_.sum);
}

QuantizedResults ResultsPlan::bind(const Frame& frame, BoundTiles& bound) const {
  QuantizedResults results = results_;
  results.start = frame.at<int32_t>(start_);
  results.multipliers = frame.at(multipliers_);
  if (out_->dtype == DType::Float32) {
    results.floats = frame.at(out_);
    results.epilogue = epilogue_.bind(frame, bound);
  } else {
    results.bytes = frame.at<uint8_t>(out_);
    results.residual = frame.at<uint8_t>(residual_);
  }
  return results;
}

Status check_result_dtypes(const Setup& setup) {
  const View* out = setup.output(0);
  const bool has_numbers = out != nullptr && out->dtype == DType::Float32;
  return setup.check_dtypes({DType::UInt8, DType::Int8, DType::Int32, DType::Float32},
                            {has_numbers ? DType::Float32 : DType::UInt8});
}

Status check_terms(const Setup& setup, int64_t terms) {
  if (terms >= 0 && terms <= kMaxQuantizedTerms) return {};
  return setup.refuse("its sums have more than %lld terms, and would be beyond 32 bits",
                      static_cast<long long>(kMaxQuantizedTerms));
}

Status check_columns(const Setup& setup, const char* name, const View& view, int64_t columns) {
  return setup.check_elements(name, view, panels_of(columns) * kPanel);
}

}  // namespace rushlight::engine
