// What a recorder keeps of an event, until it is saved in ExecuTorch's format.
#pragma once

#include <cstdint>

namespace rushlight {

enum class RecordKind : uint8_t { Block, Profile, Value, Allocation };

// Texts are named by their place in the recorder's buffer; 0 is no text.
struct Record {
  uint32_t bytes = 0;  // with the sizes and strides that follow a tensor
  RecordKind kind = RecordKind::Profile;
  bool is_output = false;  // Value: of the method
  uint8_t value = 0;       // Value: its ValueType
  uint8_t rank = 0;        // Value: of a tensor
  int8_t dtype = 0;        // Value: of a tensor
  uint32_t name = 0;
  uint32_t id_text = 0;
  uint32_t metadata = 0;
  int32_t chain = -1;
  int32_t instruction = 0;  // Block: the test case of a bundled program
  int32_t number = -1;      // the id inside a delegate; Block: how many records follow
  // Profile: start and end; Value: the value's bits, or where a tensor's bytes begin; Allocation:
  // the bytes and the time.
  uint64_t first = 0;
  uint64_t second = 0;
};

// Behind the record of a tensor, `rank` times.
struct RecordDim {
  int64_t size;
  int64_t stride;
};

}  // namespace rushlight
