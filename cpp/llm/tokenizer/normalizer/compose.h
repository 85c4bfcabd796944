// Unicode's normal forms, as tokenizers has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

// Appends NFD, or NFKD of `text` to `out`. `codes` is scratch, here and below.
void decompose(StringView text, bool compatible, std::vector<uint32_t>* codes, std::string* out);

// Appends NFC, or NFKC.
void compose(StringView text, bool compatible, std::vector<uint32_t>* codes, std::string* out);

}  // namespace rushlight::llm
