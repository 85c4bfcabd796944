// Recurrent layers over a sequence.
#include "rushlight/engine/kernels/recurrent/recurrent.h"

#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/types/dot_product.h"

namespace rushlight::engine {
namespace {

enum Input : size_t { kX, kWeights, kBias, kHidden, kCell, kScales, kShares, kInputs };
constexpr size_t kOutputs = 3;

class RecurrentLayers final : public Operator {
 public:
  Status prepare(const RecurrentParameters& parameters, Setup& setup) {
    x_ = setup.input(kX);
    weights_ = setup.input(kWeights);
    bias_ = setup.input(kBias);
    hidden_ = setup.input(kHidden);
    cell_ = setup.input(kCell);
    scales_ = setup.input(kScales);
    shares_ = setup.input(kShares);
    out_ = setup.output(0);
    last_hidden_ = setup.output(1);
    last_cell_ = setup.output(2);
    RL_TRY(check_types(setup));
    RL_TRY(read_sizes(parameters, setup));
    RL_TRY(check_constants(setup));
    RL_TRY(check_states(setup));
    setup.want_scratch(recurrent_scratch(job_.sizes, setup.threads));
    return {};
  }

  Status run(const Frame& frame) const override {
    Recurrent job = job_;
    job.x = frame.at(x_);
    job.weights = frame.at<void>(weights_);
    job.bias = frame.at(bias_);
    job.scales = frame.at(scales_);
    job.shares = frame.at<int32_t>(shares_);
    job.hidden = frame.at(hidden_);
    job.cell = frame.at(cell_);
    job.out = frame.at(out_);
    job.last_hidden = frame.at(last_hidden_);
    job.last_cell = frame.at(last_cell_);
    run_recurrent(job, frame.scratch, frame.scratch_size, frame.workers);
    return {};
  }

 private:
  Status check_types(const Setup& setup) {
    RL_TRY(setup.check_present(2));
    RL_TRY(setup.check_at_most(kInputs, kOutputs));
    for (const size_t i : {kX, kBias, kHidden, kCell, kScales}) {
      RL_TRY(setup.check_input(i, DType::Float32));
    }
    for (size_t i = 0; i < kOutputs; ++i) RL_TRY(setup.check_output(i, DType::Float32));
    RecurrentSizes& s = job_.sizes;
    switch (weights_->dtype) {
      case DType::Float32:
        break;
      case DType::BFloat16:
        s.type = PanelType::BFloat16;
        break;
      case DType::Float16:
        s.type = PanelType::Float16;
        break;
      case DType::Int8:
        s.type = PanelType::Int8;
        break;
      default:
        return setup.refuse("its weights are %s, but must be float32, float16, bfloat16 or int8",
                            dtype_name(weights_->dtype));
    }
    const bool is_int8 = s.type == PanelType::Int8;
    if ((scales_ != nullptr) != is_int8 || (shares_ != nullptr) != is_int8) {
      return setup.refuse(
          "its weights are %s: int8 weights need scales and shares, others have none",
          dtype_name(weights_->dtype));
    }
    return setup.check_input(kShares, DType::Int32);
  }

  Status read_sizes(const RecurrentParameters& parameters, const Setup& setup) {
    RecurrentSizes& s = job_.sizes;
    s.cell = parameters.cell;
    s.layers = parameters.layers;
    s.directions = parameters.bidirectional ? 2 : 1;
    s.units = parameters.units;
    s.outputs = parameters.outputs;
    const bool is_lstm = s.cell == RecurrentCell::Lstm;
    if (s.layers < 1 || s.units < 1 || s.outputs < 1 || s.outputs > s.units ||
        s.units > kMaxViewNumel || s.layers > kMaxViewNumel || (s.projects() && !is_lstm)) {
      return setup.refuse(
          "it has %lld layers of %lld units and %lld outputs: there must be at least one of each, "
          "and only an LSTM may have fewer outputs than units",
          static_cast<long long>(s.layers), static_cast<long long>(s.units),
          static_cast<long long>(s.outputs));
    }
    if (x_->rank != 3 || out_->rank != 3) return refuse_sequences(setup);
    s.length = x_->sizes[0];
    s.batch = x_->sizes[1];
    s.width = x_->sizes[2];
    if (s.width < 1 || out_->sizes[0] != s.length || out_->sizes[1] != s.batch ||
        out_->sizes[2] != s.directions * s.outputs) {
      return refuse_sequences(setup);
    }
    const bool rows =
        (x_->strides[2] == 1 || s.width == 1) && (out_->strides[2] == 1 || out_->sizes[2] == 1);
    if (!rows) {
      return setup.refuse("its input has strides %s and its result %s, but rows must have no gaps",
                          text_of(x_->strides, 3).text(), text_of(out_->strides, 3).text());
    }
    RL_TRY(setup.check_no_repeats("input", kX, *x_));
    RL_TRY(setup.check_no_repeats("output", 0, *out_));
    if (s.type == PanelType::Int8 &&
        (s.width_of(0) > kMaxQuantizedTerms || s.width_of(1) > kMaxQuantizedTerms ||
         s.units > kMaxQuantizedTerms)) {
      return setup.refuse("its sums have more than %lld terms, and would be beyond 32 bits",
                          static_cast<long long>(kMaxQuantizedTerms));
    }
    job_.x_stride = x_->strides[0];
    job_.x_row = x_->strides[1];
    job_.out_stride = out_->strides[0];
    job_.out_row = out_->strides[1];
    return {};
  }

  // Products of sizes stay small only if the weights, of which constants hold all, are as many.
  Status check_constants(const Setup& setup) const {
    const RecurrentSizes& s = job_.sizes;
    RL_TRY(setup.check_elements("its weights", *weights_, recurrent_weights(s)));
    if (bias_ != nullptr) RL_TRY(setup.check_elements("its bias", *bias_, recurrent_bias(s)));
    if (scales_ == nullptr) return {};
    RL_TRY(setup.check_elements("its scales", *scales_, recurrent_scales(s)));
    return setup.check_elements("its shares", *shares_, recurrent_scales(s));
  }

  Status check_states(const Setup& setup) const {
    const RecurrentSizes& s = job_.sizes;
    const int64_t number = s.layers * s.directions;
    const int64_t hidden = bounded_product({number, s.batch, s.outputs});
    const int64_t cell = bounded_product({number, s.batch, s.units});
    for (const View* view : {hidden_, last_hidden_}) {
      if (view != nullptr) RL_TRY(setup.check_elements("a hidden state", *view, hidden));
    }
    for (const View* view : {cell_, last_cell_}) {
      if (view == nullptr) continue;
      if (s.cell != RecurrentCell::Lstm) {
        return setup.refuse("it has a cell state, which only an LSTM may have");
      }
      RL_TRY(setup.check_elements("a cell state", *view, cell));
    }
    // The gates of one time step, for the whole batch.
    if (bounded_product({s.batch, s.columns(), static_cast<int64_t>(sizeof(float))}) < 0) {
      return setup.refuse("its batch is %lld, which is too large for its %lld gates",
                          static_cast<long long>(s.batch), static_cast<long long>(s.columns()));
    }
    return {};
  }

  Status refuse_sequences(const Setup& setup) const {
    const RecurrentSizes& s = job_.sizes;
    return setup.refuse(
        "its input has sizes %s and its result %s, but must be [length, batch, width] and [length, "
        "batch, %lld]",
        text_of(*x_).text(), text_of(*out_).text(),
        static_cast<long long>(s.directions) * static_cast<long long>(s.outputs));
  }

  const View* x_ = nullptr;
  const View* weights_ = nullptr;
  const View* bias_ = nullptr;
  const View* hidden_ = nullptr;
  const View* cell_ = nullptr;
  const View* scales_ = nullptr;
  const View* shares_ = nullptr;
  const View* out_ = nullptr;
  const View* last_hidden_ = nullptr;
  const View* last_cell_ = nullptr;
  Recurrent job_;
};

}  // namespace

Result<Operator*> make_operator(const RecurrentParameters& parameters, Setup& setup) {
  return setup.make<RecurrentLayers>(parameters);
}

}  // namespace rushlight::engine
