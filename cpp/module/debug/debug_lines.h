// A view of the half of a debug map that is read in place (named data `rushlight/debug` from
// version 2 on, docs/file-format.md). It says from which lines of Python instructions and places in
// delegates come. It allocates nothing and trusts nothing: a damaged line is reported as unknown.
// Every query is one pass over the bytes that it needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

// Reads integers of 7 bits per byte, the lowest first. After the first error it reads 0.
class VarintReader {
 public:
  VarintReader() = default;
  VarintReader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  bool more() const { return at_ < end_; }
  uint64_t number();
  // Differences 0, -1, 1, -2, … are stored as 0, 1, 2, 3, …; their sum may wrap around.
  uint64_t difference();
  // The bytes after their number.
  VarintReader sized();
  Span<const uint8_t> bytes(uint64_t size);
  bool failed() const { return failed_; }

 private:
  void fail();

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  bool failed_ = false;
};

class DebugLines {
 public:
  // A line, with its texts given by their numbers. File 0 is an unknown line.
  struct Line {
    uint64_t file = 0;
    uint64_t number = 0;
    uint64_t function = 0;
    uint64_t text = 0;
  };

  explicit DebugLines(Span<const uint8_t> map);

  // True if the bytes are such a map; otherwise all queries answer "unknown".
  bool present() const { return present_; }
  // The reference of an instruction, or of a place inside of a delegate; 0 is none.
  uint64_t instruction(StringView method, size_t index) const;
  uint64_t place(StringView method, size_t delegate, StringView id) const;
  // Writes the lines of a reference, at most `most`. Returns their number.
  size_t lines(uint64_t reference, Line* lines, size_t most) const;
  // Writes a text and a NUL, truncated to `size` at a character boundary. Returns its length.
  size_t text(uint64_t number, char* buffer, size_t size) const;

 private:
  uint64_t find(StringView text) const;
  // Reads a line, counted from 0, if it exists. Returns the number of lines.
  uint64_t line(uint64_t number, Line* out) const;
  VarintReader method(StringView name) const;

  bool present_ = false;
  VarintReader strings_, lines_, sets_, methods_;
};

// The number of bytes among the first `size` of a UTF-8 text that form whole characters.
size_t whole_characters(const char* text, size_t size);

}  // namespace rushlight
