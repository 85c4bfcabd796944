// Bytes with names: those that a program stores under keys ("rushlight/contract", a backend's
// weights), and those of an external data file (.ptd). Programs and data files implement it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/core/tensor.h"

namespace rushlight {

// How the bytes under a key are to be interpreted, if that is known.
struct TensorLayout {
  DType dtype = DType::UInt8;
  uint8_t rank = 0;
  int32_t sizes[kMaxRank] = {0};
  uint8_t dim_order[kMaxRank] = {0};
};

class NamedData {
 public:
  virtual ~NamedData() = default;
  // Returns NotFound for an unknown key. The bytes are valid as long as the program.
  virtual Result<Span<const uint8_t>> get(StringView key) const = 0;
  // Says that the bytes under a key are not needed soon. Their memory is freed if they can be read
  // again. They may still be read.
  virtual void release(StringView) const {}
  // Returns NotFound for an unknown key, NotImplemented if no layout is stored for it.
  virtual Result<TensorLayout> layout(StringView) const { return Code::NotImplemented; }
  // The number of keys that can be listed, in the order of the file.
  virtual size_t n_keys() const { return 0; }
  virtual StringView key(size_t) const { return {}; }
};

// The first key that is in both sources, or an empty view.
StringView find_duplicate(const NamedData& first, const NamedData& second);

// Two sources as one: `first` is queried before `second`. Neither is owned; either may be nullptr.
class MergedData : public NamedData {
 public:
  MergedData() = default;
  MergedData(const NamedData* first, const NamedData* second) : first_(first), second_(second) {}

  Result<Span<const uint8_t>> get(StringView key) const override;
  void release(StringView key) const override;
  Result<TensorLayout> layout(StringView key) const override;
  size_t n_keys() const override;
  StringView key(size_t i) const override;

 private:
  const NamedData* first_ = nullptr;
  const NamedData* second_ = nullptr;
};

}  // namespace rushlight
