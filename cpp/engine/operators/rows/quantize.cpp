// Conversions from float32 to uint8 and back.
#include "rushlight/engine/kernels/rows/quantize.h"

#include <cfloat>

#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {
namespace {

// Rows of equal width; a single row if there are no gaps.
Status prepare_rows(const Setup& setup, const View& in, const View& out, Rows* in_rows,
                    Rows* out_rows) {
  if (!same_sizes(in, out)) return setup.refuse("its operands differ in sizes");
  if (has_repeats(in) || !as_rows(in, in_rows) || !as_rows(out, out_rows)) {
    return setup.refuse("its rows have gaps, or repeat");
  }
  return {};
}

class ConvertOperator final : public Operator {
 public:
  Status prepare(const ConvertParameters& parameters, Setup& setup) {
    in_ = setup.input(0);
    out_ = setup.output(0);
    if (in_ == nullptr || out_ == nullptr) return setup.refuse("it has too few values");
    RL_TRY(setup.check_dtypes({in_->dtype}, out_->dtype));
    if (!choose_kind()) return setup.refuse("it does not convert between these dtypes");
    if (convert_.kind != ByteConversion::Flip &&
        (!is_byte(parameters.zero_point) ||
         !(parameters.scale >= FLT_MIN && parameters.scale <= FLT_MAX))) {
      return setup.refuse(
          "its scale is not a positive number, or its zero point is not within 0..255");
    }
    Rows in;
    Rows out;
    RL_TRY(prepare_rows(setup, *in_, *out_, &in, &out));
    convert_.scale = parameters.scale;
    convert_.zero_point = parameters.zero_point;
    convert_.rows = in.count;
    convert_.width = in.width;
    convert_.in_stride = in.stride;
    convert_.out_stride = out.stride;
    return {};
  }

  Status run(const Frame& frame) const override {
    Convert job = convert_;
    job.in = frame.at<void>(in_);
    job.out = frame.at<void>(out_);
    convert(job, frame.workers);
    return {};
  }

 private:
  bool choose_kind() {
    const DType from = in_->dtype;
    const DType to = out_->dtype;
    if (from == DType::Float32 && to == DType::UInt8) {
      convert_.kind = ByteConversion::ToBytes;
    } else if (from == DType::UInt8 && to == DType::Float32) {
      convert_.kind = ByteConversion::ToFloats;
    } else {
      convert_.kind = ByteConversion::Flip;
      return (from == DType::Int8 && to == DType::UInt8) ||
             (from == DType::UInt8 && to == DType::Int8);
    }
    return true;
  }

  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Convert convert_;
};

class QuantizeRowsOperator final : public Operator {
 public:
  Status prepare(const QuantizeRowsParameters&, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::Float32}, {DType::UInt8, DType::Float32}));
    in_ = setup.input(0);
    out_ = setup.output(0);
    scales_ = setup.output(1);
    Rows in;
    Rows out;
    RL_TRY(prepare_rows(setup, *in_, *out_, &in, &out));
    if (!is_dense(*scales_) || scales_->numel != 2 * in.count) {
      return setup.refuse("its rows' scales have other sizes");
    }
    job_.rows = in.count;
    job_.width = in.width;
    job_.in_stride = in.stride;
    job_.out_stride = out.stride;
    return {};
  }

  Status run(const Frame& frame) const override {
    QuantizeRows job = job_;
    job.in = frame.at(in_);
    job.out = frame.at<uint8_t>(out_);
    job.scales = frame.at(scales_);
    quantize_rows(job, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  const View* scales_ = nullptr;
  QuantizeRows job_;
};

}  // namespace

Result<Operator*> make_operator(const ConvertParameters& parameters, Setup& setup) {
  return setup.make<ConvertOperator>(parameters);
}

Result<Operator*> make_operator(const QuantizeRowsParameters& parameters, Setup& setup) {
  return setup.make<QuantizeRowsOperator>(parameters);
}

}  // namespace rushlight::engine
