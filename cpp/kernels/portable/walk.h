// Iterates over some dimensions of several tensors at once, with an offset into each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/tensor.h"

namespace rushlight::kernels {

template <size_t kTensors>
class Walk {
 public:
  // Adds a dimension outside of the existing ones. It is merged with the last one if both form one
  // run in every tensor.
  void add(int64_t size, const int64_t (&strides)[kTensors]) {
    if (size == 1) return;
    if (dims_ > 0 && continues(strides)) {
      sizes_[dims_ - 1] *= size;
      return;
    }
    sizes_[dims_] = size;
    index_[dims_] = 0;
    for (size_t t = 0; t < kTensors; ++t) strides_[dims_][t] = strides[t];
    ++dims_;
  }

  // Removes the innermost dimension and returns it for an inner loop: its size, and a stride for
  // each tensor. Without dimensions it is a run of one element.
  int64_t take_run(int64_t (&strides)[kTensors]) {
    for (size_t t = 0; t < kTensors; ++t) strides[t] = dims_ > 0 ? strides_[0][t] : 1;
    if (dims_ == 0) return 1;
    const int64_t size = sizes_[0];
    --dims_;
    for (size_t d = 0; d < dims_; ++d) {
      sizes_[d] = sizes_[d + 1];
      for (size_t t = 0; t < kTensors; ++t) strides_[d][t] = strides_[d + 1][t];
    }
    return size;
  }

  // The number of positions; 1 without dimensions.
  int64_t count() const {
    int64_t product = 1;
    for (size_t d = 0; d < dims_; ++d) product *= sizes_[d];
    return product;
  }
  // Moves to a position, counted from the first.
  void seek(int64_t position) {
    for (size_t t = 0; t < kTensors; ++t) offsets_[t] = 0;
    for (size_t d = 0; d < dims_; ++d) {
      index_[d] = position % sizes_[d];
      position /= sizes_[d];
      for (size_t t = 0; t < kTensors; ++t) offsets_[t] += index_[d] * strides_[d][t];
    }
  }

  int64_t offset(size_t tensor) const { return offsets_[tensor]; }

  // Moves to the next position. After the last one it returns false and is at the first one again.
  bool next() {
    for (size_t d = 0; d < dims_; ++d) {
      const bool more = ++index_[d] < sizes_[d];
      for (size_t t = 0; t < kTensors; ++t) {
        offsets_[t] += strides_[d][t] * (more ? 1 : 1 - sizes_[d]);
      }
      if (more) return true;
      index_[d] = 0;
    }
    return false;
  }

 private:
  bool continues(const int64_t (&strides)[kTensors]) const {
    for (size_t t = 0; t < kTensors; ++t) {
      if (strides[t] != strides_[dims_ - 1][t] * sizes_[dims_ - 1]) return false;
    }
    return true;
  }

  size_t dims_ = 0;  // innermost first
  int64_t sizes_[kMaxRank];
  int64_t index_[kMaxRank];
  int64_t strides_[kMaxRank][kTensors];
  int64_t offsets_[kTensors] = {};
};

}  // namespace rushlight::kernels
