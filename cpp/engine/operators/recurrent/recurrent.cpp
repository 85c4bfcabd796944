// Recurrent layers over a sequence.
#include "rushlight/engine/kernels/recurrent/recurrent.h"

#include "rushlight/engine/operators/operator.h"
#include "rushlight/engine/types/dot_product.h"

namespace rushlight::engine {
namespace {

constexpr size_t kInputs = 7;
constexpr size_t kOutputs = 3;

class RecurrentLayers final : public Operator {
 public:
  Status prepare(const RecurrentParameters& parameters, Setup& setup) {
    x_ = setup.input(0);
    weights_ = setup.input(1);
    bias_ = setup.input(2);
    hidden_ = setup.input(3);
    cell_ = setup.input(4);
    scales_ = setup.input(5);
    shares_ = setup.input(6);
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
    if (x_ == nullptr || weights_ == nullptr) return setup.refuse("an input is missing");
    if (out_ == nullptr) return setup.refuse("an output is missing");
    if (!setup.has_values(kInputs, kOutputs)) return setup.refuse("it has too many values");
    for (const View* view : {x_, bias_, hidden_, cell_, scales_, out_, last_hidden_, last_cell_}) {
      if (view != nullptr && view->dtype != DType::Float32) {
        return setup.refuse("a value is no float32");
      }
    }
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
        return setup.refuse("its weights are neither int8 nor float32 nor a half type");
    }
    const bool is_int8 = s.type == PanelType::Int8;
    if ((scales_ != nullptr) != is_int8 || (shares_ != nullptr) != is_int8) {
      return setup.refuse("int8 weights have scales and shares, and others have none");
    }
    if (is_int8 && shares_->dtype != DType::Int32) return setup.refuse("its shares are no int32");
    return {};
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
      return setup.refuse("its layers, units or outputs are not valid");
    }
    if (x_->rank != 3 || out_->rank != 3) return setup.refuse("its sequences are not of rank 3");
    s.length = x_->sizes[0];
    s.batch = x_->sizes[1];
    s.width = x_->sizes[2];
    if (s.width < 1 || out_->sizes[0] != s.length || out_->sizes[1] != s.batch ||
        out_->sizes[2] != s.directions * s.outputs) {
      return setup.refuse("the sizes of its sequences do not fit");
    }
    const bool rows =
        (x_->strides[2] == 1 || s.width == 1) && (out_->strides[2] == 1 || out_->sizes[2] == 1);
    if (!rows) return setup.refuse("its rows have gaps");
    if (has_repeats(*x_) || has_repeats(*out_)) return setup.refuse("a sequence repeats elements");
    if (s.type == PanelType::Int8 &&
        (s.width_of(0) > kMaxQuantizedTerms || s.width_of(1) > kMaxQuantizedTerms ||
         s.units > kMaxQuantizedTerms)) {
      return setup.refuse("its sums are beyond 32 bits");
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
    if (!has(weights_, recurrent_weights(s))) return setup.refuse("its weights have other sizes");
    if (bias_ != nullptr && !has(bias_, recurrent_bias(s))) {
      return setup.refuse("its bias has other sizes");
    }
    if (scales_ != nullptr &&
        !(has(scales_, recurrent_scales(s)) && has(shares_, recurrent_scales(s)))) {
      return setup.refuse("its scales or shares have other sizes");
    }
    return {};
  }

  Status check_states(const Setup& setup) const {
    const RecurrentSizes& s = job_.sizes;
    const int64_t number = s.layers * s.directions;
    const int64_t hidden = bounded_product({number, s.batch, s.outputs});
    const int64_t cell = bounded_product({number, s.batch, s.units});
    for (const View* view : {hidden_, last_hidden_}) {
      if (view != nullptr && !has(view, hidden)) {
        return setup.refuse("a hidden state has other sizes");
      }
    }
    for (const View* view : {cell_, last_cell_}) {
      if (view != nullptr && (s.cell != RecurrentCell::Lstm || !has(view, cell))) {
        return setup.refuse("a cell state has other sizes, or the layers have none");
      }
    }
    // What a step of the whole batch takes.
    if (bounded_product({s.batch, s.columns(), static_cast<int64_t>(sizeof(float))}) < 0) {
      return setup.refuse("its batch is too large");
    }
    return {};
  }

  static bool has(const View* view, int64_t numel) {
    return numel >= 0 && is_dense(*view) && view->numel == numel;
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
