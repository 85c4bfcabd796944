// What is left of a load or a run that failed: a block of fixed size that is written to a file, or
// sent, as it lies in memory. All numbers are little-endian. `rushlight explain` reads it.
//
// The memory is the caller's. While a method runs, the report holds the last instructions that have
// begun; when the method fails, or crashes, the rest is filled in. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"

namespace rushlight {

enum class FailurePhase : uint8_t { None, Load, Input, Run };

// An argument of the instruction that failed, or the input that was refused.
struct FailureValue {
  static constexpr size_t kMaxSizes = 8;
  static constexpr uint8_t kWritten = 1;   // the instruction writes it
  static constexpr uint8_t kNoMemory = 2;  // of a tensor: nothing gave it any
  static constexpr uint8_t kConstant = 4;  // of a tensor: nothing may write it
  static constexpr uint8_t kItem = 8;      // in the list of tensors before it, not an argument

  uint32_t value = 0;  // its index in the method
  uint8_t tag = 0;     // of EValue
  uint8_t flags = 0;
  int8_t dtype = 0;               // of a tensor
  uint8_t rank = 0;               // of a tensor; sizes beyond kMaxSizes are left out
  int64_t number = 0;             // an integer, the bits of a double, how many elements or items
  int32_t sizes[kMaxSizes] = {};  // of a tensor
};

// Memory that a load wanted, and what it was given.
struct FailureMemory {
  enum Kind : uint32_t { Structures, Arena, Limit };

  uint32_t kind = Structures;
  uint32_t id = 0;  // of an arena: its memory id
  uint64_t wanted = 0;
  uint64_t available = 0;
};

// An instruction that has begun.
struct FailureEvent {
  uint64_t ns = 0;           // of the platform's clock
  uint32_t instruction = 0;  // its index over all chains of the method
  uint16_t method = 0;       // its index in the program
  uint16_t run = 0;          // counted from the load, the lowest bits
};

struct FailureReport {
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kNone = UINT32_MAX;  // of an index: there is none
  static constexpr size_t kValues = 16, kMemories = 8, kEvents = 64;

  char magic[4] = {'R', 'L', 'F', 'R'};
  uint32_t version = kVersion;
  uint32_t bytes = 0;     // of the whole report; 0: nothing has failed
  uint32_t checksum = 0;  // the CRC-32 of all that follows
  uint64_t program = 0;   // program/identity.h
  uint64_t program_bytes = 0;
  uint64_t time_ns = 0;  // of the failure, by the platform's clock
  uint64_t n_events =
      0;  // that have begun; the last of them are in `events`, event n at n % kEvents
  uint64_t address = 0;  // of a signal: the address that was accessed
  uint32_t signal = 0;   // 0: there was none
  uint32_t code = 0;     // core/status.h
  uint8_t phase = 0;
  uint8_t kind = 0;           // of the instruction (events/tracer.h), if there is one
  uint16_t method_index = 0;  // in the program
  uint32_t chain = kNone;
  uint32_t instruction = kNone;  // its index in its chain, which is its debug handle
  uint32_t delegate = kNone;     // its index in the method
  uint32_t input = kNone;        // that was refused
  uint32_t n_values = 0;         // of the instruction; the first kValues are in `values`
  uint32_t n_memories = 0;       // the first kMemories are in `memories`
  uint32_t reserved = 0;
  char method[64] = {};  // texts end with a NUL; what finds no room is cut
  char name[128] = {};   // of the operator, or the backend's id
  char place[128] = {};  // inside the delegate, by the backend's own id
  char message[1024] = {};
  FailureMemory memories[kMemories];
  FailureValue values[kValues];
  FailureEvent events[kEvents];

  // An instruction begins.
  void begin_instruction(uint64_t ns, uint32_t instruction, uint16_t method, uint16_t run) {
    events[n_events++ % kEvents] = {ns, instruction, method, run};
  }
  // Forgets the last failure; the events stay.
  void clear();
  void add_value(uint32_t index, const EValue& value, uint8_t flags);
  void add_memory(FailureMemory::Kind kind, uint32_t id, uint64_t wanted, uint64_t available);
  // Sets the size and the checksum: the report is whole.
  void seal();

  // False until something fails.
  bool has_failure() const { return bytes != 0; }
  Span<const uint8_t> content() const {
    return {reinterpret_cast<const uint8_t*>(this), sizeof(FailureReport)};
  }
};

static_assert(sizeof(FailureValue) == 48 && sizeof(FailureMemory) == 24);
static_assert(sizeof(FailureEvent) == 16);
static_assert(sizeof(FailureReport) == 3424, "rushlight/inspect/failure.py knows the layout");

// What methods do with failures. A report is for one thread: methods that run at once must not
// share one.
struct FailureHook {
  FailureReport* report = nullptr;  // nullptr: nothing is reported
  // Called when the report is whole, on the thread that failed.
  void (*on_failure)(const FailureReport& report, void* context) = nullptr;
  void* context = nullptr;
};

// Copies a text and a NUL; what finds no room is cut.
template <size_t N>
void set_text(char (&to)[N], StringView text) {
  const size_t n = text.size() < N ? text.size() : N - 1;
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

}  // namespace rushlight
