#include "rushlight/module/files/failure_file.h"

#include <cstdio>

namespace rushlight {

FailureHook FailureFile::hook() {
  const auto write = [](const FailureReport& report, void* self) {
    static_cast<FailureFile*>(self)->write(report);
  };
  return {&report_, write, this};
}

void FailureFile::write(const FailureReport& report) {
  is_written_ = false;
  std::FILE* file = std::fopen(path_.c_str(), "wb");
  if (file == nullptr) return;
  const Span<const uint8_t> bytes = report.content();
  const bool all = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  is_written_ = std::fclose(file) == 0 && all;
}

}  // namespace rushlight
