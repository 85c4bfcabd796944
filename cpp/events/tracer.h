// The interface through which a method tells what it does. The runtime calls it only if one was
// given: without one, a run costs one comparison more. cpp/trace/ has a tracer that writes
// ExecuTorch's ETDump. Times are those of now_ns().
#pragma once

#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/span.h"

namespace rushlight {

enum class InstructionKind : uint8_t { Kernel, Delegate, Move, JumpFalse, Free };

// A place inside a delegate, by the backend's own number, or by its text.
struct DelegateId {
  const char* text = nullptr;  // nullptr: the number counts
  int64_t number = 0;
};

// A value between the operators of a delegate. Its elements may have gaps between them.
struct DelegateValue {
  const uint8_t* data;
  DType dtype;
  Span<const int64_t> sizes;
  Span<const int64_t> strides;  // in elements
};

// What an instruction was called with.
struct InstructionArguments {
  Span<EValue* const> all;
  size_t first_written = 0;  // the arguments from here on are written
};

class Tracer {
 public:
  virtual ~Tracer() = default;
  // The runs that follow are of test case `index` of a bundled program; -1: of none.
  virtual void set_bundled_case(int32_t /*index*/) {}
  // A block of events, outside of instructions: the load of a method ("Method::init"), or one of
  // its runs ("Method::execute").
  virtual void begin(const char* name, StringView method) = 0;
  virtual void end(const char* name) = 0;
  // One instruction: its index is its debug handle.
  virtual void begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                                 StringView name) = 0;
  // `arguments` are nullptr if the instruction failed.
  virtual void end_instruction(const InstructionArguments* arguments) = 0;
  // A stretch inside the delegate that is called or loaded. The metadata are the backend's own.
  virtual void delegate_event(DelegateId id, uint64_t start, uint64_t stop,
                              Span<const uint8_t> metadata) = 0;
  // Whether the value of a place inside the delegate that is called is wanted.
  virtual bool wants_delegate_value(DelegateId id) const = 0;
  virtual void delegate_value(DelegateId id, const DelegateValue& value) = 0;
  // Bytes that were taken from a memory: of a load all that stays, of a run the most that one
  // instruction took. `index` is a memory id of the plan, which the name ends with; -1: none.
  virtual void allocation(const char* /*memory*/, int32_t /*index*/, uint64_t /*bytes*/) {}
  // An output of the method; called for each after the last instruction.
  virtual void output(const EValue& value) = 0;
};

}  // namespace rushlight
