// Recurrent layers: the input's share of all gates is one product for many time steps at once (as
// in Appleyard et al., https://arxiv.org/abs/1604.01946), then each time step multiplies the hidden
// state with panels that stay in the cores' own caches, a part of the columns on each thread.
#pragma once

#include <cstddef>

#include "rushlight/engine/types/recurrent.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// Elements of all weights, as they are packed; -1 if they are too many.
int64_t recurrent_weights(const RecurrentSizes& sizes);
// Floats of the bias; -1 if they are too many.
int64_t recurrent_bias(const RecurrentSizes& sizes);
// Scales of int8 weights, and as many shares; -1 if they are too many.
int64_t recurrent_scales(const RecurrentSizes& sizes);
// Bytes of scratch, on so many threads.
size_t recurrent_scratch(const RecurrentSizes& sizes, size_t threads);

// The result does not depend on the number of threads. `workers` may be nullptr.
void run_recurrent(const Recurrent& job, void* scratch, size_t scratch_size, Workers* workers);

}  // namespace rushlight::engine
