// A report of failures that goes to a file.
#pragma once

#include <string>

#include "rushlight/core/message.h"
#include "rushlight/trace/failure_report.h"

namespace rushlight {

class FailureFile {
 public:
  explicit FailureFile(std::string path) : path_(std::move(path)) {}

  // For ModuleOptions::failure: writes the file at every failure, over the one before.
  FailureHook hook();
  const std::string& path() const { return path_; }
  // True if the last failure is in the file.
  bool is_written() const { return is_written_; }

 private:
  void write(const FailureReport& report);

  std::string path_;
  FailureReport report_;
  bool is_written_ = false;
};

}  // namespace rushlight
