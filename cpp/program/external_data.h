// A data file (.ptd): named tensors outside of the program, verified once and never copied.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/program/key_order.h"
#include "rushlight/program/loader.h"

namespace rushlight {

class ExternalData : public NamedData {
 public:
  // Reads and verifies a file; the loader's image must outlive this object. Returns
  // InvalidExternalData with the reason in message().
  Status load(DataLoader& loader);
  const Message& message() const { return message_; }

  // To be called after load(): from then on keys are found by binary search instead of a linear
  // one. `order` must have room for n_keys() numbers, which are written here, and must outlive this
  // object.
  void sort_keys(uint32_t* order);

  Result<Span<const uint8_t>> get(StringView key) const override;
  Result<TensorLayout> layout(StringView key) const override;
  size_t n_keys() const override;
  StringView key(size_t i) const override;

 private:
  Status verify(Message& message);

  Span<const uint8_t> image_;
  Span<const uint8_t> flatbuffer_;
  Span<const uint8_t> segments_;
  KeyOrder order_;
  Message message_;
};

}  // namespace rushlight
