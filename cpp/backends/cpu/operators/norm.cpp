// Layer, RMS and group norms, and softmax.
#include "rushlight/backends/cpu/kernels/rows.h"
#include "rushlight/backends/cpu/operator.h"
#include "rushlight/backends/cpu/operators/geometry.h"

namespace rushlight::cpu {
namespace {

// Ok if the vector is left out or has so many elements, one after the other.
Status check_vector(const Setup& setup, const View* vector, int64_t numel) {
  if (vector == nullptr || (is_dense(*vector) && vector->numel == numel)) return {};
  return setup.refuse("its scale or shift has other sizes");
}

class NormOperator final : public Operator {
 public:
  Status prepare(Setup& setup) {
    RL_TRY(setup.check_floats(4, 1, 2));
    in_ = setup.input(0);
    scale_ = setup.input(1);
    shift_ = setup.input(2);
    residual_ = setup.input(3);
    out_ = setup.output(0);
    sum_ = setup.output(1);
    const View* alike[] = {out_, residual_, sum_};
    bool are_dense = is_dense(*in_);
    for (const View* view : alike) {
      are_dense = are_dense && (view == nullptr || (same_sizes(*view, *in_) && is_dense(*view)));
    }
    if (!are_dense) return setup.refuse("its values have other sizes, or gaps");
    if (in_->rank == 0 || (sum_ != nullptr && residual_ == nullptr)) {
      return setup.refuse("it has no rows, or a sum of nothing");
    }
    norm_.width = in_->sizes[in_->rank - 1];
    norm_.rows = norm_.width > 0 ? in_->numel / norm_.width : 0;
    norm_.epsilon = setup.step().operation_as_Norm().epsilon();
    norm_.rms = setup.step().operation_as_Norm().rms();
    RL_TRY(check_vector(setup, scale_, norm_.width));
    return check_vector(setup, shift_, norm_.width);
  }

  Status run(const Frame& frame) const override {
    Norm norm = norm_;
    norm.in = frame.at(in_);
    norm.residual = frame.at(residual_);
    norm.scale = frame.at(scale_);
    norm.shift = frame.at(shift_);
    norm.out = frame.at(out_);
    norm.sum = frame.at(sum_);
    normalize(norm, frame.workers);
    return {};
  }

 private:
  const View *in_ = nullptr, *scale_ = nullptr, *shift_ = nullptr, *residual_ = nullptr;
  const View *out_ = nullptr, *sum_ = nullptr;
  Norm norm_;
};

class GroupNormOperator final : public Operator {
 public:
  Status prepare(Setup& setup) {
    RL_TRY(setup.check_floats(3, 1));
    in_ = setup.input(0);
    scale_ = setup.input(1);
    shift_ = setup.input(2);
    out_ = setup.output(0);
    if (in_->rank < 2 || !same_sizes(*in_, *out_)) return setup.refuse("its values differ in size");
    norm_.channels_last = !(is_dense(*in_) && is_dense(*out_));
    if (norm_.channels_last && !(is_channels_last(*in_) && is_channels_last(*out_))) {
      return setup.refuse("its values have gaps, or differ in layout");
    }
    norm_.batch = in_->sizes[0];
    norm_.channels = in_->sizes[1];
    const int64_t images = norm_.batch * norm_.channels;
    norm_.space = images > 0 ? in_->numel / images : 0;
    norm_.groups = setup.step().operation_as_GroupNorm().groups();
    norm_.epsilon = setup.step().operation_as_GroupNorm().epsilon();
    if (norm_.groups < 1 || norm_.channels % norm_.groups != 0) {
      return setup.refuse("its channels do not fit its groups");
    }
    RL_TRY(check_vector(setup, scale_, norm_.channels));
    return check_vector(setup, shift_, norm_.channels);
  }

  Status run(const Frame& frame) const override {
    GroupNorm norm = norm_;
    norm.in = frame.at(in_);
    norm.scale = frame.at(scale_);
    norm.shift = frame.at(shift_);
    norm.out = frame.at(out_);
    normalize_groups(norm, frame.workers);
    return {};
  }

 private:
  const View *in_ = nullptr, *scale_ = nullptr, *shift_ = nullptr, *out_ = nullptr;
  GroupNorm norm_;
};

}  // namespace

Result<const Operator*> make_norm(Setup& setup) {
  NormOperator made;
  RL_TRY(made.prepare(setup));
  return setup.make(made);
}

Result<const Operator*> make_group_norm(Setup& setup) {
  GroupNormOperator made;
  RL_TRY(made.prepare(setup));
  return setup.make(made);
}

}  // namespace rushlight::cpu
