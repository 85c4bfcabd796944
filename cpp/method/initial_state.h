// The initial content of mutable tensors: bytes for planned memory that are in the program or in
// external data.
#pragma once

#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/program/program.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

// The bytes of a tensor in external data, after comparing dtype, sizes and dim order. Returns
// NotFound or InvalidExternalData with the key in `message`.
Result<Span<const uint8_t>> external_bytes(fb::Tensor tensor, const NamedData* external,
                                           Message& message);

// Writes the initial content of all of the method's tensors in arena `k`. If several methods share
// an arena, its owner calls this once for each method before any of them is loaded.
Status write_initial_state(const MethodMeta& meta, size_t k, Span<uint8_t> arena,
                           const NamedData* external, Message& message);

}  // namespace rushlight
