// Where an automaton can be in a text: states with their counts and the stacks below them. All ways
// to read the text go on side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/run/stacks.h"

namespace rushlight::llm::grammar {

struct Place {
  uint32_t state;
  uint32_t stack;
  uint64_t count;
};

inline bool operator==(const Place& a, const Place& b) {
  return a.state == b.state && a.stack == b.stack && a.count == b.count;
}

using Places = std::vector<Place>;  // each with a transition by a byte; sorted by state and count

class Reader {
 public:
  // `reach`: 0 for exact counts. Otherwise counts that are not told apart by `reach` more of them
  // are the same, so that few of them differ.
  Reader(const Automaton& automaton, uint64_t reach) : automaton_(&automaton), reach_(reach) {}

  // Adds what is reached without a byte, and keeps what goes on by one. Returns whether the stack's
  // bottom is reached: the text of the outermost call may end here.
  bool close(Places* places);
  // The places after a byte, not closed.
  void advance(const Places& places, uint8_t byte, Places* after) const;
  // The count that stands for `count` in a call of the state's rule.
  uint64_t canonical(uint32_t state, uint64_t count) const;

  const Automaton& automaton() const { return *automaton_; }
  Stacks& stacks() { return stacks_; }
  const Stacks& stacks() const { return stacks_; }

 private:
  struct Slot {
    uint32_t round = 0, index = 0;
  };
  void add(uint32_t state, uint64_t count, uint32_t stack);
  void follow(const Place& place);
  void grow();

  const Automaton* automaton_;
  uint64_t reach_;
  Stacks stacks_;
  // While places are closed: those known, those still to be followed, and a table of both.
  Places known_;
  std::vector<uint32_t> open_;
  std::vector<Slot> table_ = std::vector<Slot>(64);
  uint32_t round_ = 0;
  bool ends_ = false;
};

}  // namespace rushlight::llm::grammar
