// Batch norm, with running statistics or those of the batch, and group norm.
#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/reduction/norm.h"

namespace rushlight::kernels {
namespace {

// Checks shape, types and parameters, and gives `out` the sizes of `in`.
Status check_channel_norm(KernelContext& ctx, const Tensor& in, const Tensor* weight,
                          const Tensor* bias, Tensor& out) {
  RL_TRY(check_floating(ctx, "input", in));
  if (in.rank < 2) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s, but must have at least two dimensions",
                    ShapeText(in.shape()).text());
  }
  RL_TRY(check_same_type(ctx, "input", in, out));
  RL_TRY(check_channels(ctx, "weight", weight, in.sizes[1]));
  RL_TRY(check_channels(ctx, "bias", bias, in.sizes[1]));
  return ctx.resize_like(out, in);
}

Status resize_statistics(KernelContext& ctx, const Shape& shape, Tensor& mean, Tensor& rstd) {
  RL_TRY(check_floating(ctx, "the out of the mean", mean));
  RL_TRY(check_floating(ctx, "the out of the reciprocal deviation", rstd));
  RL_TRY(ctx.resize(mean, shape.span()));
  return ctx.resize(rstd, shape.span());
}

// Normalises with given statistics. `outs` are the result and two outputs that become empty.
Status normalize_by_given(KernelContext& ctx, ChannelNorm norm, const Tensor& in,
                          const Tensor& mean, const Tensor& var, EValue* const* outs) {
  Tensor& out = outs[0]->tensor();
  RL_TRY(check_channel_norm(ctx, in, norm.weight, norm.bias, out));
  RL_TRY(check_channels(ctx, "running_mean", &mean, in.sizes[1]));
  RL_TRY(check_channels(ctx, "running_var", &var, in.sizes[1]));
  Shape none;
  none.push(0);
  RL_TRY(resize_statistics(ctx, none, outs[1]->tensor(), outs[2]->tensor()));
  if (in.numel == 0) return {};
  norm.in = &in;
  norm.out = &out;
  norm.groups = in.sizes[1];
  norm.running_mean = &mean;
  norm.running_var = &var;
  normalize_channels(ctx, norm);
  return {};
}

// Normalises with the statistics of the batch. `outs` are the result and both statistics.
Status normalize_by_batch(KernelContext& ctx, ChannelNorm norm, const Tensor& in,
                          EValue* const* outs) {
  Tensor& out = outs[0]->tensor();
  RL_TRY(check_channel_norm(ctx, in, norm.weight, norm.bias, out));
  if (in.numel == 0) {
    return ctx.fail(Code::InvalidArgument, "input has shape %s, but must have elements",
                    ShapeText(in.shape()).text());
  }
  Shape channels;
  channels.push(in.sizes[1]);
  RL_TRY(resize_statistics(ctx, channels, outs[1]->tensor(), outs[2]->tensor()));
  norm.in = &in;
  norm.out = &out;
  norm.groups = in.sizes[1];
  norm.mean_out = &outs[1]->tensor();
  norm.rstd_out = &outs[2]->tensor();
  normalize_channels(ctx, norm);
  return {};
}

}  // namespace

// _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum,
//                                       eps, *, out0, out1, out2): out1 and out2 become empty.
Status batch_norm_inference_out(KernelContext& ctx, EValue* const* args) {
  ChannelNorm norm;
  norm.weight = args[1]->tensor_or_null();
  norm.bias = args[2]->tensor_or_null();
  norm.eps = args[6]->to_double();
  return normalize_by_given(ctx, norm, args[0]->tensor(), args[3]->tensor(), args[4]->tensor(),
                            &args[7]);
}

// _native_batch_norm_legit.no_stats(input, weight, bias, training, momentum, eps, *, out,
//                                   save_mean, save_invstd)
Status batch_norm_no_stats_out(KernelContext& ctx, EValue* const* args) {
  ChannelNorm norm;
  norm.weight = args[1]->tensor_or_null();
  norm.bias = args[2]->tensor_or_null();
  norm.eps = args[5]->to_double();
  if (!args[3]->to_bool()) {
    return ctx.fail(Code::InvalidArgument,
                    "training is false, but without running statistics it must be true");
  }
  return normalize_by_batch(ctx, norm, args[0]->tensor(), &args[6]);
}

// _native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps,
//                          *, out, save_mean, save_invstd):
// in training it updates the running statistics as well.
Status batch_norm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  Tensor& mean = args[3]->tensor();
  Tensor& var = args[4]->tensor();
  ChannelNorm norm;
  norm.weight = args[1]->tensor_or_null();
  norm.bias = args[2]->tensor_or_null();
  norm.eps = args[7]->to_double();
  if (!args[5]->to_bool()) return normalize_by_given(ctx, norm, in, mean, var, &args[8]);
  RL_TRY(check_channel_norm(ctx, in, norm.weight, norm.bias, args[8]->tensor()));
  RL_TRY(check_channels(ctx, "running_mean", &mean, in.sizes[1]));
  RL_TRY(check_channels(ctx, "running_var", &var, in.sizes[1]));
  RL_TRY(ctx.resize(mean, mean.shape()));
  RL_TRY(ctx.resize(var, var.shape()));
  norm.mixed_mean = &mean;
  norm.mixed_var = &var;
  norm.momentum = args[6]->to_double();
  return normalize_by_batch(ctx, norm, in, &args[8]);
}

// native_group_norm(input, weight, bias, N, C, HxW, group, eps, *, out0, out1, out2)
Status group_norm_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& in = args[0]->tensor();
  ChannelNorm norm;
  norm.weight = args[1]->tensor_or_null();
  norm.bias = args[2]->tensor_or_null();
  norm.groups = args[6]->to_int();
  norm.eps = args[7]->to_double();
  norm.per_batch = true;
  RL_TRY(check_channel_norm(ctx, in, norm.weight, norm.bias, args[8]->tensor()));
  int64_t pixels = 1;
  for (size_t d = 2; d < in.rank && pixels <= INT32_MAX; ++d) pixels *= in.sizes[d];
  if (args[3]->to_int() != in.sizes[0] || args[4]->to_int() != in.sizes[1] ||
      args[5]->to_int() != pixels) {
    return ctx.fail(Code::InvalidArgument,
                    "input has shape %s, which N %lld, C %lld and HxW %lld do not describe",
                    ShapeText(in.shape()).text(), static_cast<long long>(args[3]->to_int()),
                    static_cast<long long>(args[4]->to_int()),
                    static_cast<long long>(args[5]->to_int()));
  }
  if (norm.groups < 1 || norm.groups > INT32_MAX || in.sizes[1] % norm.groups != 0) {
    return ctx.fail(Code::InvalidArgument, "group is %lld, but must divide the %d channels",
                    static_cast<long long>(norm.groups), static_cast<int>(in.sizes[1]));
  }
  Shape statistics;
  statistics.push(in.sizes[0]);
  statistics.push(norm.groups);
  Tensor& mean = args[9]->tensor();
  Tensor& rstd = args[10]->tensor();
  RL_TRY(resize_statistics(ctx, statistics, mean, rstd));
  if (in.numel == 0) {
    fill_empty_statistics(mean, rstd);
    return {};
  }
  norm.in = &in;
  norm.out = &args[8]->tensor();
  norm.mean_out = &mean;
  norm.rstd_out = &rstd;
  normalize_channels(ctx, norm);
  return {};
}

}  // namespace rushlight::kernels
