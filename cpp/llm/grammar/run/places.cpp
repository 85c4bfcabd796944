#include "rushlight/llm/grammar/run/places.h"

#include <algorithm>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {

uint64_t Reader::canonical(uint32_t state, uint64_t count) const {
  const Rule& rule = automaton_->rules[automaton_->states[state].rule];
  if (!rule.counts) return 0;
  if (reach_ == 0) return count;
  if (rule.high != kEndless && rule.high - count <= reach_) return count;
  if (count >= rule.low) return rule.low;
  return rule.low - count > reach_ ? 0 : count;
}

void Reader::grow() {
  table_.assign(table_.size() * 2, Slot());
  round_ = 1;
  for (uint32_t i = 0; i < known_.size(); ++i) {
    size_t at = mix(known_[i].state, known_[i].count) & (table_.size() - 1);
    while (table_[at].round == round_) at = (at + 1) & (table_.size() - 1);
    table_[at] = {round_, i};
  }
}

void Reader::add(uint32_t state, uint64_t count, uint32_t stack) {
  if (!automaton_->viable(state, count)) return;
  count = canonical(state, count);
  size_t at = mix(state, count) & (table_.size() - 1);
  for (; table_[at].round == round_; at = (at + 1) & (table_.size() - 1)) {
    Place& place = known_[table_[at].index];
    if (place.state != state || place.count != count) continue;
    const uint32_t united = stacks_.unite(place.stack, stack);
    if (united != place.stack) open_.push_back(table_[at].index);
    place.stack = united;
    return;
  }
  const auto index = static_cast<uint32_t>(known_.size());
  table_[at] = {round_, index};
  known_.push_back({state, stack, count});
  open_.push_back(index);
  if (known_.size() * 2 > table_.size()) grow();
}

void Reader::follow(const Place& place) {
  const State& state = automaton_->states[place.state];
  for (const Jump& jump : state.jumps) {
    add(jump.target, place.count + (jump.counts ? 1 : 0), place.stack);
  }
  for (const Call& call : state.calls) {
    if (!automaton_->viable(call.after, place.count)) continue;
    const uint64_t count = canonical(call.after, place.count);
    add(automaton_->rules[call.rule].start, 0, stacks_.push(call.after, count, place.stack));
  }
  if (!automaton_->ends(place.state, place.count)) return;
  ends_ = ends_ || stacks_.has_bottom(place.stack);
  for (size_t i = 0; i < stacks_.links(place.stack).size(); ++i) {
    const Link link = stacks_.links(place.stack)[i];  // a copy: adding may move the links
    add(link.state, link.count, link.parent);
  }
}

bool Reader::close(Places* places) {
  known_.clear();
  open_.clear();
  ends_ = false;
  if (++round_ == 0) {
    table_.assign(table_.size(), Slot());
    round_ = 1;
  }
  for (const Place& place : *places) add(place.state, place.count, place.stack);
  while (!open_.empty()) {
    const Place place = known_[open_.back()];
    open_.pop_back();
    follow(place);
  }
  places->clear();
  for (const Place& place : known_) {
    if (!automaton_->states[place.state].edges.empty()) places->push_back(place);
  }
  std::sort(places->begin(), places->end(), [](const Place& a, const Place& b) {
    return a.state != b.state ? a.state < b.state : a.count < b.count;
  });
  return ends_;
}

void Reader::advance(const Places& places, uint8_t byte, Places* after) const {
  after->clear();
  for (const Place& place : places) {
    for (const Edge& edge : automaton_->states[place.state].edges) {
      if (byte < edge.low || byte > edge.high) continue;
      const uint64_t count = place.count + (edge.counts ? 1 : 0);
      if (automaton_->viable(edge.target, count))
        after->push_back({edge.target, place.stack, count});
    }
  }
}

}  // namespace rushlight::llm::grammar
