#include "rushlight/llm/session/text_output.h"

#include <algorithm>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm {
namespace {

constexpr size_t kRoom = 1024;  // for the bytes of one token and what is held back

}  // namespace

void TextOutput::open(const std::vector<std::string>* stops) {
  stops_ = stops;
  stop_ = nullptr;
  dropped_ = 0;
  pending_.clear();
  size_t longest = 0;
  for (const std::string& stop : *stops) longest = std::max(longest, stop.size());
  pending_.reserve(kRoom + longest);
}

// The length of the longest end of the text that begins a stop string.
size_t TextOutput::held_back() const {
  size_t held = 0;
  for (const std::string& stop : *stops_) {
    for (size_t length = std::min(stop.size() - 1, pending_.size()); length > held; --length) {
      if (pending_.compare(pending_.size() - length, length, stop, 0, length) == 0) held = length;
    }
  }
  return held;
}

void TextOutput::emit(size_t count, bool is_end, std::string* out) {
  size_t at = 0;
  while (at < count) {
    const Character character = read_utf8(pending_.data() + at, count - at);
    if (character.cut && !is_end) break;
    char bytes[4];
    out->append(bytes, write_utf8(character.code, bytes));
    at += character.bytes;
  }
  pending_.erase(0, at);
}

bool TextOutput::push(StringView bytes, std::string* out) {
  pending_.append(bytes.data(), bytes.size());
  size_t first = std::string::npos;
  for (const std::string& stop : *stops_) {
    const size_t at = pending_.find(stop);
    if (at < first) first = at, stop_ = &stop;
  }
  if (stop_ == nullptr) {
    emit(pending_.size() - held_back(), false, out);
    return false;
  }
  dropped_ = pending_.size() - first;
  pending_.resize(first);
  finish(out);
  return true;
}

void TextOutput::end_by(const std::string& stop, std::string* out) {
  stop_ = &stop;
  dropped_ = 0;
  finish(out);
}

void TextOutput::finish(std::string* out) {
  emit(pending_.size(), true, out);
  pending_.clear();
}

}  // namespace rushlight::llm
