// What the normalisations share: parameters, statistics, and the engine of the normalisations by
// channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernels/portable/loops/reduction/norm.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {

// Returns InvalidArgument unless `tensor` (called `name` in the message) is floating and has one
// dimension of `size` elements, or is nullptr (None).
Status check_channels(KernelContext& ctx, const char* name, const Tensor* tensor, int64_t size);

// Reads and writes one element at an offset as a double.
double load_value(const Tensor& tensor, int64_t offset);
void store_value(const Tensor& tensor, int64_t offset, double value);

// The statistics of an empty set: mean 0, and NaN for the reciprocal deviation.
void fill_empty_statistics(Tensor& mean, Tensor& rstd);

// (x - mean) * scale + bias, for loops that compute in `compute`. The shift makes up for rounding
// the mean to that type.
Affine centered(double mean, double scale, double bias, DType compute);

// 1 / sqrt(sum / count + eps), for a sum of squared distances from the mean.
double reciprocal_deviation(double sum, int64_t count, double eps);

// A normalisation of [B, C, ...]. Statistics belong to a group of channels, of one B or of all.
struct ChannelNorm {
  const Tensor* in = nullptr;
  const Tensor* out = nullptr;
  const Tensor* weight = nullptr;  // [C] or nullptr
  const Tensor* bias = nullptr;
  double eps = 0;
  int64_t groups = 1;
  bool per_batch = false;
  // Statistics [C] to use; if nullptr, they are computed.
  const Tensor* running_mean = nullptr;
  const Tensor* running_var = nullptr;
  // If not nullptr, running statistics [C] that are updated from the computed ones by `momentum`.
  const Tensor* mixed_mean = nullptr;
  const Tensor* mixed_var = nullptr;
  double momentum = 0;
  // If not nullptr, where the computed statistics are stored ([B, groups] or [groups]).
  const Tensor* mean_out = nullptr;
  const Tensor* rstd_out = nullptr;
};

// `in` and `out` must have equal shapes, at least two dimensions, at least one element, and equal
// floating types. `groups` must divide C, and per_batch must be set unless each group is one
// channel. The other tensors must have been checked and have their final sizes.
void normalize_channels(KernelContext& ctx, const ChannelNorm& norm);

}  // namespace rushlight::kernels
