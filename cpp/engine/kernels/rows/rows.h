// Norms, softmax, reductions, gathers and copies (../../types/rows.h).
#pragma once

#include <cstdint>

#include "rushlight/engine/types/rows.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

void normalize(const Norm& norm, Workers* workers);

void normalize_groups(const GroupNorm& norm, Workers* workers);

void softmax(const Softmax& softmax, Workers* workers);

void reduce(const Reduce& reduce, Workers* workers);

bool gather(const Gather& gather, int64_t* index_bad, Workers* workers);

void copy(const Copy& copy, Workers* workers);

}  // namespace rushlight::engine
