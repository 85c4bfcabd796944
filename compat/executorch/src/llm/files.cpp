#include "files.h"

#include <cstdio>

namespace tokenizers::internal {

bool read_file(const std::string& path, std::string* bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  bytes->clear();
  char part[1 << 16];
  size_t count = 0;
  while ((count = std::fread(part, 1, sizeof(part), file)) > 0) bytes->append(part, count);
  const bool is_whole = std::ferror(file) == 0;
  std::fclose(file);
  return is_whole;
}

}  // namespace tokenizers::internal
