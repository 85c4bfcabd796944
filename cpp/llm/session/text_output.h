// The text of a model's tokens as readers get it: whole UTF-8 characters, and nothing of a stop
// string, not even its beginning. What may turn out to be either is held back.
#pragma once

#include <string>
#include <vector>

#include "rushlight/core/span.h"

namespace rushlight::llm {

class TextOutput {
 public:
  // `stops` must outlive this object and has no empty strings.
  void open(const std::vector<std::string>* stops);

  // Adds the bytes of a token and appends what is certain to `out`. True if a stop string is
  // complete: it and what follows it are dropped, and nothing may be added any more.
  bool push(StringView bytes, std::string* out);
  // A token whose text is a stop string has come: appends what was held back.
  void end_by(const std::string& stop, std::string* out);
  // Appends what was held back. A character that is not complete becomes U+FFFD.
  void finish(std::string* out);
  // The stop string that was found, or nullptr.
  const std::string* stop() const { return stop_; }
  // How many of the last bytes were dropped for it.
  size_t dropped() const { return dropped_; }

 private:
  size_t held_back() const;
  void emit(size_t count, bool is_end, std::string* out);

  const std::vector<std::string>* stops_ = nullptr;
  const std::string* stop_ = nullptr;
  std::string pending_;
  size_t dropped_ = 0;
};

}  // namespace rushlight::llm
