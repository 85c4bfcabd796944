#include "rushlight/program/identity.h"

#include "rushlight/core/digest.h"

namespace rushlight {
namespace {

constexpr size_t kSamples = 64;
constexpr size_t kSampleBytes = 64;

}  // namespace

uint64_t identity_of(const Program& program) {
  const Span<const uint8_t> image = program.image();
  uint64_t digest = extend_digest(image.size(), program.flatbuffer());
  const Result<Span<const uint8_t>> lines = program.get(StringView("rushlight/debug"));
  if (lines.ok()) digest = extend_digest(digest, lines.value());
  if (image.size() < kSampleBytes) return digest;
  const size_t last = image.size() - kSampleBytes;
  for (size_t i = 0; i < kSamples; ++i) {
    const size_t at = last / (kSamples - 1) * i;
    digest = extend_digest(digest, {image.data() + at, kSampleBytes});
  }
  return digest;
}

}  // namespace rushlight
