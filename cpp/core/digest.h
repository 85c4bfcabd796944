// A digest of bytes, to detect damage. It does not protect against an attacker.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/platform/workers.h"

namespace rushlight {

// Any change within eight bytes changes it. It does not depend on the number of threads. `workers`
// may be nullptr.
uint64_t digest_of(Span<const uint8_t> bytes, Workers* workers = nullptr);
// The digest of several parts, in order, is that of the parts before and of the next one.
uint64_t extend_digest(uint64_t before, Span<const uint8_t> part);

}  // namespace rushlight
