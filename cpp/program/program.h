// A verified program file: its methods by name, constants, and named data.
//
// Loading checks everything that the file says about itself (header, FlatBuffer, segments) once.
// method_meta() checks the whole plan of one method. After that, reads need no checks. Nothing is
// copied: the loader and its image must live as long as the program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/program/key_order.h"
#include "rushlight/program/loader.h"
#include "rushlight/program/method_meta.h"

namespace rushlight {

namespace fb {
class Program;
}

class Program : public NamedData {
 public:
  // Reads and verifies a file. A second load() replaces the first; after a failure no program is
  // loaded.
  Status load(DataLoader& loader);
  // The error of the last load().
  const Message& message() const { return message_; }
  bool loaded() const { return image_.data() != nullptr; }

  size_t n_methods() const;
  StringView method_name(size_t i) const;
  // Checks the whole plan of a method. Returns InvalidArgument for an unknown name (the message
  // lists the existing ones), and InvalidProgram and other codes for a plan that violates a rule of
  // the format; `message` names the method and the value or instruction.
  Result<MethodMeta> method_meta(StringView name, Message* message = nullptr) const;

  // To be called after load(): from then on get() finds keys by binary search. `order` must have
  // room for n_keys() numbers, which are written here, and must outlive this object.
  void sort_keys(uint32_t* order);
  // Implements NamedData; returns NotFound for an unknown key.
  Result<Span<const uint8_t>> get(StringView key) const override;
  size_t n_keys() const override;
  StringView key(size_t i) const override;
  size_t n_named_data() const { return n_keys(); }
  StringView named_data_key(size_t i) const { return key(i); }

  // For the loader of methods. `segment(i)` is the bytes of one segment; `i` must be in range.
  Span<const uint8_t> image() const { return image_; }
  Span<const uint8_t> flatbuffer() const { return flatbuffer_; }
  size_t n_segments() const;
  Span<const uint8_t> segment(size_t i) const;
  // Tells the loader that these bytes of the image are not needed soon. They may still be read.
  void release(Span<const uint8_t> bytes) const;
  void release(StringView key) const override;
  // The bytes from constant `index` (1-based) to the end of the segment; empty if there is no such
  // constant. `mutable_state` is the same for initial values of mutable buffers.
  Span<const uint8_t> constant(size_t index) const;
  Span<const uint8_t> mutable_state(size_t index) const;
  fb::Program root() const;

 private:
  Status read_header(Message& message);
  Status check_root(Message& message);

  DataLoader* loader_ = nullptr;
  Span<const uint8_t> image_;
  Span<const uint8_t> flatbuffer_;
  Span<const uint8_t> segments_;  // segment offsets are relative to its start
  KeyOrder order_;
  Message message_;
};

}  // namespace rushlight
