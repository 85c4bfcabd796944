// Whether a data file (.ptd) belongs to a program.
//
// A data file holds the digests of its entries under "rushlight/digests/<tag>", a program those of
// the entries that it was saved with under "rushlight/data/<tag>": 16 bytes each, sorted. The data
// file must have all that the program wants; it may have more. What the weights' bytes are now is
// not looked at, so that this takes no time whatever their size.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"

namespace rushlight {

// Ok also for a program that holds no digests: one from elsewhere, or of an older version.
// InvalidExternalData with the reason in `message`.
Status check_data_pair(const NamedData& program, const NamedData& data, Message& message);

}  // namespace rushlight
