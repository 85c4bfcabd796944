// Checks that a data file (.ptd) belongs to a program.
//
// A data file holds the digests of its entries under "rushlight/digests/<tag>". A program holds the
// digests of the entries that it was saved with under "rushlight/data/<tag>". Digests have 16 bytes
// each and are sorted. The data file must have all digests that the program has; it may have more.
// The bytes of the weights are not read, so that the check is fast for files of any size.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"

namespace rushlight {

// Also returns Ok for a program without digests, from another exporter or an older version. Returns
// InvalidExternalData with the reason in `message`.
Status check_data_pair(const NamedData& program, const NamedData& data, Message& message);

}  // namespace rushlight
