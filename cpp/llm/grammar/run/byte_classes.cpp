#include "rushlight/llm/grammar/run/byte_classes.h"

#include <bitset>

namespace rushlight::llm::grammar {

ByteClasses::ByteClasses(const Automaton& automaton) {
  std::bitset<257> begins;
  begins[0] = begins[0x80] = true;  // kinds of characters do not tell those from there on apart
  for (const State& state : automaton.states) {
    for (const Edge& edge : state.edges) begins[edge.low] = begins[edge.high + 1u] = true;
  }
  for (size_t i = 0; i < classes_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(i);
    if (begins[i]) ranges_.push_back({byte, byte, 0});
    ranges_.back().last = byte;
    ranges_.back().kinds |= kKindOfByte[i];
    classes_[i] = static_cast<uint8_t>(ranges_.size() - 1);
  }
}

}  // namespace rushlight::llm::grammar
