// What program files and data files share.
//
// Made from schema/common.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {

// Element types. The numbers are torch's.
enum class ScalarType : int8_t {
  BYTE = 0,
  CHAR = 1,
  SHORT = 2,
  INT = 3,
  LONG = 4,
  HALF = 5,
  FLOAT = 6,
  DOUBLE = 7,
  COMPLEX32 = 8,
  COMPLEX64 = 9,
  COMPLEX128 = 10,
  BOOL = 11,
  QINT8 = 12,
  QUINT8 = 13,
  QINT32 = 14,
  BFLOAT16 = 15,
  QUINT4x2 = 16,
  QUINT2x4 = 17,
  BITS16 = 22,
  FLOAT8E5M2 = 23,
  FLOAT8E4M3FN = 24,
  FLOAT8E5M2FNUZ = 25,
  FLOAT8E4M3FNUZ = 26,
  UINT16 = 27,
  UINT32 = 28,
  UINT64 = 29,
};

// A range of the segment area that follows the flatbuffer in its file.
class DataSegment : public Table {
 public:
  using Table::Table;
  // Bytes from the start of the segment area.
  uint64_t offset() const { return scalar<uint64_t>(0, 0); }
  // Bytes, without the padding that follows.
  uint64_t size() const { return scalar<uint64_t>(1, 0); }
};

}  // namespace fb
}  // namespace rushlight
