// Inner loops of adapters: narrow products of float32 rows with weights in float32 or float16
// (delegate/adapter.h). Every element is summed in one order, whatever the number of rows, so that
// a token's result does not depend on the tokens beside it.
#pragma once

#include <cstdint>

#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// Products of one row, two, ... at a time: at most as many as the instruction set has registers
// for.
constexpr int64_t kMostAdapterRows = 4;

// out[i * out_stride + k] = the sum of x[i * x_stride + j] * a[k * a_stride + j] over j.
struct AdapterDown {
  int64_t depth = 0;  // rows of `a` are filled up with zeros to a multiple of 16
  int64_t ranks = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  const void* a = nullptr;
  int64_t a_stride = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};

// y[i * y_stride + j] += the sum of h[i * h_stride + k] * b over the ranks k, where element (k, j)
// of b is at ((j / 16) * ranks + k) * 16 + j % 16.
struct AdapterUp {
  int64_t ranks = 0;
  int64_t columns = 0;
  const float* h = nullptr;
  int64_t h_stride = 0;
  const void* b = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
};

using AdapterDownFn = void (*)(const AdapterDown& product);
using AdapterUpFn = void (*)(const AdapterUp& product);

struct AdapterLoops {
  int64_t rows;  // the most at a time
  // [rows - 1] for float32, then for float16
  AdapterDownFn down[2][kMostAdapterRows];
  AdapterUpFn up[2][kMostAdapterRows];
};

RL_LOOPS(AdapterLoops, adapter_loops)

}  // namespace rushlight::engine
