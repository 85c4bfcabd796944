#include "rushlight/llm/grammar/run/text_states.h"

#include <algorithm>

namespace rushlight::llm::grammar {
namespace {

void add(uint32_t state, std::vector<uint32_t>* states) {
  if (std::find(states->begin(), states->end(), state) == states->end()) states->push_back(state);
}

// The states after `bytes` more bytes of a character.
void add_continued(const Automaton& automaton, uint32_t state, uint32_t bytes,
                   std::vector<uint32_t>* states) {
  if (bytes == 0) return add(state, states);
  for (const Edge& edge : automaton.states[state].edges) {
    if (edge.high >= 0x80) add_continued(automaton, edge.target, bytes - 1, states);
  }
}

// The states after one character.
void add_next(const Automaton& automaton, uint32_t state, const TextClass& text,
              std::vector<uint32_t>* states) {
  struct Lead {
    uint8_t low, high;
    uint32_t more;
  };
  constexpr Lead kLeads[] = {{0xC2, 0xDF, 1}, {0xE0, 0xEF, 2}, {0xF0, 0xF4, 3}};
  for (const Edge& edge : automaton.states[state].edges) {
    uint32_t byte = edge.low;
    while (byte <= edge.high && byte < 0x80 && !text.begins[byte]) ++byte;
    if (byte <= edge.high && byte < 0x80) add(edge.target, states);
    for (const Lead& lead : kLeads) {
      if (!text.begins[lead.low] || edge.low > lead.high || edge.high < lead.low) continue;
      add_continued(automaton, edge.target, lead.more, states);
    }
  }
}

}  // namespace

TextStates text_states(const Automaton& automaton, uint32_t state, const TextClass& text) {
  TextStates reached;
  reached.from = state;
  reached.is_chain = true;
  std::vector<uint32_t> next;
  for (uint32_t at = state; reached.states.size() < text.longest;) {
    next.clear();
    add_next(automaton, at, text, &next);
    if (next.size() > 1) reached.is_chain = false;
    if (next.empty() || !reached.is_chain) break;
    reached.stays = !reached.states.empty() && next[0] == reached.states.back();
    if (reached.stays) break;
    at = next[0];
    reached.states.push_back(at);
  }
  if (reached.is_chain) return reached;
  reached.stays = false;
  add_next(automaton, state, text, &reached.states);
  for (size_t i = 0; i < reached.states.size(); ++i) {
    if (reached.states.size() > TextStates::kMost) {
      reached.is_known = false;
      break;
    }
    add_next(automaton, reached.states[i], text, &reached.states);
  }
  return reached;
}

}  // namespace rushlight::llm::grammar
