// The interface through which a method tells what it does. The runtime calls it only if one was
// given; a tracer may allocate, so runs that must not are runs without one.
#pragma once

#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/span.h"

namespace rushlight {

enum class InstructionKind : uint8_t { Kernel, Delegate, Move, JumpFalse, Free };

class Tracer {
 public:
  virtual ~Tracer() = default;
  // A named stretch outside of instructions ("Method::init", "Method::execute").
  virtual void begin(const char* name) = 0;
  virtual void end(const char* name) = 0;
  // One instruction: its index is its debug handle.
  virtual void begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                                 StringView name) = 0;
  virtual void end_instruction(uint32_t chain, uint32_t instruction, EValue* const* args,
                               uint32_t n_args) = 0;
  // A stretch inside a delegate, by the delegate's own id.
  virtual void delegate_event(const char* id, int64_t id_number, uint64_t start, uint64_t stop) = 0;
};

}  // namespace rushlight
