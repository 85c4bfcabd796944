// Conversions from float32 to uint8 and back.
#include "rushlight/engine/kernels/rows/quantize.h"

#include <cfloat>

#include "rushlight/engine/operators/requantize.h"
#include "rushlight/engine/operators/unary.h"
#include "rushlight/engine/types/dot_product.h"

namespace rushlight::engine {
namespace {

// Sets the sizes and strides of `job`.
template <typename Job>
Status prepare_rows(const Setup& setup, const View& in, const View& out, Job* job) {
  Rows in_rows;
  Rows out_rows;
  RL_TRY(setup.check_same_sizes("its input", in, "its result", out));
  RL_TRY(setup.check_no_repeats("input", 0, in));
  RL_TRY(setup.read_rows("its input", in, &in_rows));
  RL_TRY(setup.read_rows("its result", out, &out_rows));
  job->rows = in_rows.count;
  job->width = in_rows.width;
  job->in_stride = in_rows.stride;
  job->out_stride = out_rows.stride;
  return {};
}

class ConvertOperator final : public UnaryOperator<Convert, convert> {
 public:
  Status prepare(const ConvertParameters& parameters, Setup& setup) {
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(setup.check_present(1));
    RL_TRY(setup.check_dtypes({in_->dtype}, out_->dtype));
    if (!choose_kind()) {
      return setup.refuse(
          "it converts %s to %s, but only float32, int8 and uint8 from and to uint8",
          dtype_name(in_->dtype), dtype_name(out_->dtype));
    }
    if (job_.kind != ByteConversion::Flip &&
        (!is_byte(parameters.zero_point) ||
         !(parameters.scale >= FLT_MIN && parameters.scale <= FLT_MAX))) {
      return setup.refuse(
          "its scale is %g and its zero point %d, but must be a positive number and 0..255",
          double{parameters.scale}, parameters.zero_point);
    }
    job_.scale = parameters.scale;
    job_.zero_point = parameters.zero_point;
    return prepare_rows(setup, *in_, *out_, &job_);
  }

 private:
  bool choose_kind() {
    const DType from = in_->dtype;
    const DType to = out_->dtype;
    if (from == DType::Float32 && to == DType::UInt8) {
      job_.kind = ByteConversion::ToBytes;
    } else if (from == DType::UInt8 && to == DType::Float32) {
      job_.kind = ByteConversion::ToFloats;
    } else {
      job_.kind = ByteConversion::Flip;
      return (from == DType::Int8 && to == DType::UInt8) ||
             (from == DType::UInt8 && to == DType::Int8);
    }
    return true;
  }
};

class QuantizeRowsOperator final : public Operator {
 public:
  Status prepare(const QuantizeRowsParameters&, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::Float32}, {DType::UInt8, DType::Float32}));
    in_ = setup.input(0);
    out_ = setup.output(0);
    scales_ = setup.output(1);
    RL_TRY(prepare_rows(setup, *in_, *out_, &job_));
    return setup.check_elements("its rows' scales and zero points", *scales_, 2 * job_.rows);
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

class QuantizeGroupsOperator final : public Operator {
 public:
  Status prepare(const QuantizeRowsParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::Float32}, {DType::Int8, DType::Float32, DType::Int32}));
    in_ = setup.input(0);
    out_ = setup.output(0);
    scales_ = setup.output(1);
    sums_ = setup.output(2);
    RL_TRY(prepare_rows(setup, *in_, *out_, &job_));
    const int64_t size = parameters.group_size;
    if ((size != kMaxRowGroup && size != kMaxRowGroup / 2) || job_.width % size != 0) {
      return setup.refuse(
          "its groups have %lld elements, but must have 16 or 32, which divide %lld",
          static_cast<long long>(size), static_cast<long long>(job_.width));
    }
    job_.group_size = size;
    const int64_t groups = bounded_product({job_.rows, job_.width / size});
    RL_TRY(setup.check_elements("its groups' scales", *scales_, groups));
    return setup.check_elements("its groups' sums", *sums_, groups);
  }

  Status run(const Frame& frame) const override {
    QuantizeGroups job = job_;
    job.in = frame.at(in_);
    job.out = frame.at<int8_t>(out_);
    job.scales = frame.at(scales_);
    job.sums = frame.at<int32_t>(sums_);
    quantize_groups(job, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  const View* scales_ = nullptr;
  const View* sums_ = nullptr;
  QuantizeGroups job_;
};

}  // namespace

Result<Operator*> make_operator(const ConvertParameters& parameters, Setup& setup) {
  return setup.make<ConvertOperator>(parameters);
}

Result<Operator*> make_operator(const QuantizeRowsParameters& parameters, Setup& setup) {
  if (parameters.group_size != 0) return setup.make<QuantizeGroupsOperator>(parameters);
  return setup.make<QuantizeRowsOperator>(parameters);
}

}  // namespace rushlight::engine
