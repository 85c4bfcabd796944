// Layer, RMS and group norms.
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/operators/images/geometry.h"
#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {
namespace {

// Reads the layout of the elements, and the number of scales and shifts.
Status arrange(const NormParameters& parameters, const View& in, const View& out,
               const Setup& setup, Norm* norm, int64_t* channels) {
  if (in.rank == 0) return setup.refuse("its input has no dimensions, and so no rows");
  RL_TRY(setup.check_same_sizes("its input", in, "its result", out));
  RL_TRY(setup.check_elements("its input", in, in.numel));
  RL_TRY(setup.check_elements("its result", out, out.numel));
  norm->width = in.sizes[in.rank - 1];
  norm->rows = norm->width > 0 ? in.numel / norm->width : 0;
  norm->rms = parameters.rms;
  *channels = norm->width;
  return {};
}

Status arrange(const GroupNormParameters& parameters, const View& in, const View& out,
               const Setup& setup, GroupNorm* norm, int64_t* channels) {
  if (in.rank < 2) {
    return setup.refuse("its input has %u dimensions, but must have [batch, channels, ...]",
                        unsigned{in.rank});
  }
  RL_TRY(setup.check_same_sizes("its input", in, "its result", out));
  norm->channels_last = !(is_dense(in) && is_dense(out));
  if (norm->channels_last && !(is_channels_last(in) && is_channels_last(out))) {
    return setup.refuse(
        "its input has sizes %s and strides %s and its result %s: both must be row-major or both "
        "channels last",
        text_of(in).text(), text_of(in.strides, in.rank).text(),
        text_of(out.strides, out.rank).text());
  }
  norm->batch = in.sizes[0];
  norm->channels = *channels = in.sizes[1];
  const int64_t images = norm->batch * norm->channels;
  norm->space = images > 0 ? in.numel / images : 0;
  norm->groups = parameters.groups;
  if (norm->groups < 1 || norm->channels % norm->groups != 0) {
    return setup.refuse("its %lld channels do not divide into %lld groups",
                        static_cast<long long>(norm->channels),
                        static_cast<long long>(norm->groups));
  }
  return {};
}

template <typename Kernel, void (*kNormalize)(const Kernel&, Workers*)>
class NormOperator final : public Operator {
 public:
  template <typename P>
  Status prepare(const P& parameters, Setup& setup) {
    RL_TRY(setup.check_floats(3, 1));
    in_ = setup.input(0);
    scale_ = setup.input(1);
    shift_ = setup.input(2);
    out_ = setup.output(0);
    norm_.epsilon = parameters.epsilon;
    int64_t channels = 0;
    RL_TRY(arrange(parameters, *in_, *out_, setup, &norm_, &channels));
    if (scale_ != nullptr) RL_TRY(setup.check_elements("its scale", *scale_, channels));
    return shift_ == nullptr ? Status() : setup.check_elements("its shift", *shift_, channels);
  }

  Status run(const Frame& frame) const override {
    Kernel norm = norm_;
    norm.in = frame.at(in_);
    norm.scale = frame.at(scale_);
    norm.shift = frame.at(shift_);
    norm.out = frame.at(out_);
    kNormalize(norm, frame.workers);
    return {};
  }

 private:
  const View *in_ = nullptr, *scale_ = nullptr, *shift_ = nullptr, *out_ = nullptr;
  Kernel norm_;
};

}  // namespace

Result<Operator*> make_operator(const NormParameters& parameters, Setup& setup) {
  return setup.make<NormOperator<Norm, normalize>>(parameters);
}

Result<Operator*> make_operator(const GroupNormParameters& parameters, Setup& setup) {
  return setup.make<NormOperator<GroupNorm, normalize_groups>>(parameters);
}

}  // namespace rushlight::engine
