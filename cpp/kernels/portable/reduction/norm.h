// What the normalisations share: parameters, statistics, and the engine of those that work by
// channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/reduction/norm.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {

// InvalidArgument unless `tensor` (called `name`) is floating and has `size` elements in one
// dimension. nullptr, for None, is fine.
Status check_channels(KernelContext& ctx, const char* name, const Tensor* tensor, int64_t size);

// One element, by its offset, as a double and from one.
double load_value(const Tensor& tensor, int64_t offset);
void store_value(const Tensor& tensor, int64_t offset, double value);

// The statistics of no elements: mean 0, and NaN for the reciprocal deviation.
void fill_empty_statistics(Tensor& mean, Tensor& rstd);

// (x - mean) * scale + bias, for loops that compute in `compute`: what rounding the mean to that
// type takes away, the shift gives back.
Affine centered(double mean, double scale, double bias, DType compute);

// 1 / sqrt(sum / count + eps), for a sum of squared distances from the mean.
double reciprocal_deviation(double sum, int64_t count, double eps);

// A normalisation of [B, C, ...]: statistics belong to a group of channels, and to one B or to all.
struct ChannelNorm {
  const Tensor* in = nullptr;
  const Tensor* out = nullptr;
  const Tensor* weight = nullptr;  // [C] or nullptr
  const Tensor* bias = nullptr;
  double eps = 0;
  int64_t groups = 1;
  bool per_batch = false;
  // Given statistics [C], or nullptr: they are computed then.
  const Tensor* running_mean = nullptr;
  const Tensor* running_var = nullptr;
  // Given with `momentum`: what computed statistics are mixed into ([C]), or nullptr.
  const Tensor* mixed_mean = nullptr;
  const Tensor* mixed_var = nullptr;
  double momentum = 0;
  // Where computed statistics go ([B, groups] or [groups]), or nullptr.
  const Tensor* mean_out = nullptr;
  const Tensor* rstd_out = nullptr;
};

// `in` and `out` have equal shapes, two dimensions or more, at least one element, and equal
// floating types; groups divide C, and per_batch is set if groups are not single channels. The
// other tensors have been checked, and their final sizes.
void normalize_channels(KernelContext& ctx, const ChannelNorm& norm);

}  // namespace rushlight::kernels
