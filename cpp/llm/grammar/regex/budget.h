// What compiling one grammar may cost. Each automaton has limits of its own; this one is for all of
// them together, so that many parts that are just small enough do not add up.
#pragma once

#include <algorithm>
#include <cstddef>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::llm::grammar {

class Budget {
 public:
  static constexpr size_t kMost = size_t{1} << 28;

  // Counts cells of tables, states that are visited, and comparisons. False if there were too many.
  bool spend(size_t operations) {
    spent_ = std::min(spent_ + std::min(operations, kMost), kMost + 1);
    return !is_spent();
  }
  // The same, as an error.
  Status take(size_t operations, Message* message) {
    return spend(operations) ? Status() : fail(message);
  }
  bool is_spent() const { return spent_ > kMost; }
  size_t spent() const { return spent_; }
  Status fail(Message* message) const {
    return message->fail(Code::OutOfResources,
                         "compiling takes more than %zu operations in all: use fewer or simpler "
                         "patterns, properties, values and tools",
                         kMost);
  }

 private:
  size_t spent_ = 0;
};

}  // namespace rushlight::llm::grammar
