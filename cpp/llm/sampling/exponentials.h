// Loops over all logits of a step, written so that the compiler makes vectors of them. Sums have a
// fixed order: the same logits give the same numbers on every machine.
#pragma once

#include <cstddef>

namespace rushlight::llm {

// The greatest value; NaN if any of them is NaN or infinite. `count` >= 1.
float finite_maximum(const float* x, size_t count);

// The greatest value of some that may be minus infinity. `count` >= 1.
float maximum_of(const float* x, size_t count);

// weights[i] = exp((x[i] - shift) * scale), for x[i] <= shift, and their sum. Below 1e-38 it is 0.
double exponentials(const float* x, size_t count, float shift, float scale, float* weights);

double sum_of(const float* weights, size_t count);

// The sum of exponentials alone, without a scale.
double sum_of_exponentials(const float* x, size_t count, float shift);

}  // namespace rushlight::llm
