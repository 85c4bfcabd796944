#include "rushlight/program/data_pair.h"

#include <cstring>

namespace rushlight {
namespace {

constexpr char kInProgramText[] = "rushlight/data/";
constexpr char kInDataFileText[] = "rushlight/digests/";
constexpr StringView kInProgram(kInProgramText, sizeof(kInProgramText) - 1);
constexpr StringView kInDataFile(kInDataFileText, sizeof(kInDataFileText) - 1);
constexpr size_t kDigest = 16;

bool starts_with(StringView text, StringView prefix) {
  return text.size() >= prefix.size() &&
         std::memcmp(text.data(), prefix.data(), prefix.size()) == 0;
}

StringView behind(StringView text, StringView prefix) {
  return {text.data() + prefix.size(), text.size() - prefix.size()};
}

// Moves *at to the first key with the prefix, at or after *at. False if there is none.
bool find_prefix(const NamedData& data, StringView prefix, size_t* at) {
  const size_t n = data.n_keys();
  while (*at < n && !starts_with(data.key(*at), prefix)) ++*at;
  return *at < n;
}

bool is_whole(const Result<Span<const uint8_t>>& digests) {
  return digests.ok() && digests.value().size() % kDigest == 0;
}

// The number of digests in `wanted` that are not in `have`. Both are sorted.
size_t missing(Span<const uint8_t> wanted, Span<const uint8_t> have) {
  size_t n = 0;
  size_t at = 0;
  for (size_t i = 0; i + kDigest <= wanted.size(); i += kDigest) {
    int order = -1;
    while (at + kDigest <= have.size()) {
      order = std::memcmp(have.data() + at, wanted.data() + i, kDigest);
      if (order >= 0) break;
      at += kDigest;
    }
    if (at + kDigest > have.size() || order != 0) ++n;
  }
  return n;
}

}  // namespace

Status check_data_pair(const NamedData& program, const NamedData& data, Message& message) {
  size_t first = 0;
  if (!find_prefix(program, kInProgram, &first)) return {};
  const StringView expected = behind(program.key(first), kInProgram);
  size_t at = 0;
  if (!find_prefix(data, kInDataFile, &at)) {
    return message.fail(Code::InvalidExternalData,
                        "this data file does not say which program it belongs to; pass the "
                        "%.*s.ptd that was saved with the program",
                        expected.len(), expected.data());
  }
  const StringView tag = behind(data.key(at), kInDataFile);
  const Result<Span<const uint8_t>> have = data.get(data.key(at));
  StringView key;
  for (size_t i = first; find_prefix(program, kInProgram, &i); ++i) {
    if (behind(program.key(i), kInProgram) == tag) key = program.key(i);
  }
  if (key.empty()) {
    return message.fail(Code::InvalidExternalData,
                        "this is the data file %.*s.ptd of another program; pass the %.*s.ptd that "
                        "was saved with this one",
                        tag.len(), tag.data(), expected.len(), expected.data());
  }
  const Result<Span<const uint8_t>> wanted = program.get(key);
  if (!is_whole(wanted) || !is_whole(have)) {
    return message.fail(Code::InvalidExternalData,
                        "the digests of the data file %.*s.ptd are damaged; save it again",
                        tag.len(), tag.data());
  }
  const size_t n = missing(wanted.value(), have.value());
  if (n == 0) return {};
  return message.fail(Code::InvalidExternalData,
                      "this %.*s.ptd is not the one that the program was saved with: %zu of %zu "
                      "entries differ; pass the one that was, or save both again",
                      tag.len(), tag.data(), n, wanted.value().size() / kDigest);
}

}  // namespace rushlight
