// A text as unigram models read it: its characters, with their labels in the trie of pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/tokenizer/table.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {

class Letters {
 public:
  // What texts are read into, and kept for the next one.
  struct Buffers {
    std::vector<uint32_t> codes, labels;
  };
  // To write some letters at once: where the next one goes.
  struct Cursor {
    uint32_t *code, *label;

    void put(uint32_t the_code, uint32_t the_label) {
      *code++ = the_code;
      *label++ = the_label;
    }
  };

  // Empty.
  Letters(const PieceTrie& trie, Buffers* buffers) : trie_(trie), buffers_(*buffers) { clear(); }

  void clear() {
    size_ = 0;
    end_at(room(0));
  }
  void add(uint32_t code) {
    Cursor cursor = room(1);
    cursor.put(code, trie_.label(code));
    end_at(cursor);
  }
  void add(StringView text) {
    for (size_t i = 0; i < text.size();) {
      const Point point = read_point(text.data() + i, text.size() - i);
      add(point.code);
      i += point.bytes;
    }
  }
  void drop_last() {
    --size_;
    end_at(room(0));
  }

  size_t size() const { return size_; }
  bool ends_with(uint32_t code) const { return size_ != 0 && buffers_.codes[size_ - 1] == code; }
  // The characters, and kNone for the end.
  const uint32_t* codes() const { return buffers_.codes.data(); }
  // Their labels, and 0 for the end.
  const uint32_t* labels() const { return buffers_.labels.data(); }

  // The end, with room for `most` letters.
  Cursor room(size_t most) {
    const size_t places = size_ + most + 1;
    if (buffers_.labels.size() < places) {
      buffers_.codes.resize(places + places / 2);
      buffers_.labels.resize(places + places / 2);
    }
    return {&buffers_.codes[size_], &buffers_.labels[size_]};
  }
  void end_at(Cursor cursor) {
    *cursor.code = kNone;
    *cursor.label = 0;
    size_ = static_cast<size_t>(cursor.label - buffers_.labels.data());
  }

 private:
  const PieceTrie& trie_;
  Buffers& buffers_;
  size_t size_ = 0;
};

}  // namespace rushlight::llm
