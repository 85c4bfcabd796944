// The first content of mutable tensors: bytes that the program, or external data, holds for planned
// memory.
#pragma once

#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

// The bytes that external data holds for a tensor, after a comparison of dtype, sizes and dim
// order. NotFound or InvalidExternalData with the key in `message`.
Result<Span<const uint8_t>> external_bytes(fb::Tensor tensor, const NamedData* external,
                                           Message& message);

// Writes the first content of all of the method's tensors that lie in arena `k`. For arenas that
// several methods share, their owner calls it once for each method before any is loaded.
Status write_initial_state(const MethodMeta& meta, size_t k, Span<uint8_t> arena,
                           const NamedData* external, Message& message);

}  // namespace rushlight
