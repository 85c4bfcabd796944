// Files that are read as a whole.
#pragma once

#include <string>

namespace tokenizers::internal {

bool read_file(const std::string& path, std::string* bytes);

}  // namespace tokenizers::internal
