// A tracer that keeps events in memory of the caller, to be saved as ExecuTorch's ETDump. It
// allocates nothing; what does not fit is counted.
//
// Records grow from the buffer's front, texts from its back; equal texts are kept once. Events are
// recorded when they end, as ExecuTorch does: an operator's before that of its instruction, the
// whole run's last.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/status.h"
#include "rushlight/events/tracer.h"
#include "rushlight/trace/record.h"
#include "rushlight/trace/value_store.h"

namespace rushlight {

// Which values are kept: none; the outputs of methods; those, what every operator writes, and what
// delegates tell of the values between theirs.
enum class ValueLevel : uint8_t { None, Outputs, All };

class TraceRecorder : public Tracer {
 public:
  // Args:
  //   memory: at least kLeastMemory bytes; must live as long as the recorder.
  //   values: where values go; nullptr for none.
  //   level: which values are kept.
  explicit TraceRecorder(Span<uint8_t> memory, ValueStore* values = nullptr,
                         ValueLevel level = ValueLevel::None);
  static constexpr size_t kLeastMemory = 4096;
  // Of ValueLevel::All, keep only what belongs to one of these names, which must live as long as
  // the recorder: a kernel's or a backend's ("aten::sin.out"), the index of an instruction ("7"),
  // or a place inside its delegate ("7/12"). Empty, as at first: everything. The outputs of methods
  // are always kept.
  void choose_values(Span<const StringView> names) { chosen_ = names; }

  // Forgets everything that was recorded.
  void clear();
  // Events, and values, that found no room.
  uint64_t dropped() const { return dropped_; }
  uint64_t dropped_values() const { return dropped_values_; }

  // The first record, the one behind `record`; nullptr if there is none.
  const Record* first() const;
  const Record* next(const Record& record) const;
  const RecordDim* dims(const Record& record) const;
  // The text of a name, an id or metadata; empty for 0.
  StringView text(uint32_t place) const;
  // All texts as they lie in the buffer, and the place of the first. At a text's place are four
  // bytes of the recorder's own, its size in four bytes, its bytes and a zero: behind the first
  // four, it is a string of a flatbuffer.
  Span<const uint8_t> texts() const;
  size_t texts_place() const { return back_; }
  // The names of the block of what was dropped, and of its two events.
  const uint32_t* dropped_texts() const { return dropped_texts_; }

  void set_bundled_case(int32_t index) override { bundled_case_ = index; }
  void begin(const char* name, StringView method) override;
  void end(const char* name) override;
  void begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                         StringView name) override;
  void end_instruction(const InstructionArguments* arguments) override;
  void delegate_event(DelegateId id, uint64_t start, uint64_t stop,
                      Span<const uint8_t> metadata) override;
  bool wants_delegate_value(DelegateId id) const override { return wants_values(&id); }
  void delegate_value(DelegateId id, const DelegateValue& value) override;
  void allocation(const char* memory, int32_t index, uint64_t bytes) override;
  void output(const EValue& value) override;

 private:
  struct Text {
    uint32_t next;  // the place of another with the same hash; 0: there is none
    uint32_t size;
  };
  static constexpr size_t kBuckets = 256;

  Record* append(RecordKind kind, size_t extra);
  uint32_t keep_text(const void* data, size_t size);
  uint32_t text_of(StringView text) { return keep_text(text.data(), text.size()); }
  // Whether the values of the instruction that runs are wanted; `inside` is a place in its
  // delegate, nullptr for its own arguments.
  bool wants_values(const DelegateId* inside) const;
  void set_id(Record& record, DelegateId id);
  void place(Record& record) const;
  void value(const EValue& value, bool is_output);
  void tensor(const Tensor& tensor, bool is_output);
  Record* append_tensor(DType dtype, size_t rank, size_t numel);
  void append_elements(DType dtype, const uint8_t* data, size_t count);
  static DType recorded(DType dtype);
  const Record* at(size_t offset) const;

  Span<uint8_t> memory_;
  ValueStore* values_;
  ValueLevel level_;
  Span<const StringView> chosen_;
  size_t front_ = 0;
  size_t back_ = 0;
  size_t block_ = 0;  // where the block's record is
  bool in_block_ = false;
  int32_t bundled_case_ = -1;
  uint64_t block_start_ = 0;
  uint32_t block_method_ = 0;
  // The instruction that runs.
  bool in_instruction_ = false;
  uint32_t chain_ = 0;
  uint32_t instruction_ = 0;
  InstructionKind kind_ = InstructionKind::Kernel;
  StringView called_;  // the kernel's or backend's name
  uint32_t name_ = 0;
  uint64_t start_ = 0;
  uint64_t dropped_ = 0;
  uint64_t dropped_values_ = 0;
  uint32_t dropped_texts_[3] = {};
  uint32_t heads_[kBuckets];
};

}  // namespace rushlight
