// Elementwise operators on uint8.
#include "rushlight/engine/kernels/rows/quantized.h"

#include "rushlight/engine/operators/requantize.h"

namespace rushlight::engine {
namespace {

// Checks the operands of an operator of `a`, `b` and `out` alone.
class BytePlan {
 public:
  // `b` may be nullptr.
  Status prepare(const Setup& setup, const View* a, const View* b, const View* out) {
    a_ = a;
    b_ = b;
    out_ = out;
    RL_TRY(setup.check_same_sizes("its first input", *a, "its result", *out));
    if (b != nullptr) RL_TRY(setup.check_same_sizes("its second input", *b, "its result", *out));
    operands_.rank = out->rank;
    for (size_t d = 0; d < out->rank; ++d) {
      operands_.sizes[d] = out->sizes[d];
      operands_.a_strides[d] = a->strides[d];
      operands_.b_strides[d] = b != nullptr ? b->strides[d] : 0;
      operands_.out_strides[d] = out->strides[d];
    }
    return {};
  }
  ByteOperands bind(const Frame& frame) const {
    ByteOperands operands = operands_;
    operands.a = frame.at<uint8_t>(a_);
    operands.b = frame.at<uint8_t>(b_);
    operands.out = frame.at<uint8_t>(out_);
    return operands;
  }

 private:
  const View* a_ = nullptr;
  const View* b_ = nullptr;
  const View* out_ = nullptr;
  ByteOperands operands_;
};

class CombineOperator final : public Operator {
 public:
  Status prepare(const QuantizedBinaryParameters& parameters, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::UInt8, DType::UInt8}, DType::UInt8));
    RL_TRY(plan_.prepare(setup, setup.input(0), setup.input(1), setup.output(0)));
    return read_binary(setup, parameters, &binary_);
  }

  Status run(const Frame& frame) const override {
    combine(binary_, plan_.bind(frame), frame.workers);
    return {};
  }

 private:
  BytePlan plan_;
  QuantizedBinary binary_;
};

class LookupOperator final : public Operator {
 public:
  Status prepare(const LookupParameters&, Setup& setup) {
    RL_TRY(setup.check_dtypes({DType::UInt8, DType::UInt8}, DType::UInt8));
    RL_TRY(plan_.prepare(setup, setup.input(0), nullptr, setup.output(0)));
    table_ = setup.input(1);
    return setup.check_elements("its table", *table_, 256);
  }

  Status run(const Frame& frame) const override {
    ByteOperands operands = plan_.bind(frame);
    operands.b = frame.at<uint8_t>(table_);
    look_up(operands, frame.workers);
    return {};
  }

 private:
  BytePlan plan_;
  const View* table_ = nullptr;
};

}  // namespace

Result<Operator*> make_operator(const QuantizedBinaryParameters& parameters, Setup& setup) {
  return setup.make<CombineOperator>(parameters);
}

Result<Operator*> make_operator(const LookupParameters& parameters, Setup& setup) {
  return setup.make<LookupOperator>(parameters);
}

}  // namespace rushlight::engine
