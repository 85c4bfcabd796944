// A view of the half of a debug map that is read in place (named data `rushlight/debug` from
// version 2 on, docs/file-format.md): which lines of Python instructions and places in delegates
// come from. It allocates nothing and trusts nothing: a damaged line is an unknown line. Every
// query is one pass over the bytes that it concerns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight {

// Reads whole numbers of 7 bits a byte, the lowest first; reads 0 from the first fault on.
class VarintReader {
 public:
  VarintReader() = default;
  VarintReader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  bool more() const { return at_ < end_; }
  uint64_t number();
  // 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ...; a sum of these may wrap around.
  uint64_t difference();
  // The bytes behind their number.
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
  // A line, its texts by their numbers; file 0 is a line that is not known.
  struct Line {
    uint64_t file = 0;
    uint64_t number = 0;
    uint64_t function = 0;
    uint64_t text = 0;
  };

  explicit DebugLines(Span<const uint8_t> map);

  // Whether the bytes are such a map; otherwise all queries answer "unknown".
  bool present() const { return present_; }
  // What an instruction, or a place inside a delegate, refers to: 0 is nothing.
  uint64_t instruction(StringView method, size_t index) const;
  uint64_t place(StringView method, size_t delegate, StringView id) const;
  // The lines that a reference stands for, at most `most`; returns how many.
  size_t lines(uint64_t reference, Line* lines, size_t most) const;
  // Writes a text, cut to `size` between characters and closed with a NUL; returns its length.
  size_t text(uint64_t number, char* buffer, size_t size) const;

 private:
  uint64_t find(StringView text) const;
  // Finds a line, counted from 0, if it is there; returns how many lines there are.
  uint64_t line(uint64_t number, Line* out) const;
  VarintReader method(StringView name) const;

  bool present_ = false;
  VarintReader strings_, lines_, sets_, methods_;
};

// How many of the first `size` bytes of a text in UTF-8 are whole characters.
size_t whole_characters(const char* text, size_t size);

}  // namespace rushlight
