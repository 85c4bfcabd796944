#include "rushlight/llm/grammar/state.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace rushlight::llm {

using grammar::Place;
using grammar::Places;
using grammar::Stacks;

namespace {

constexpr size_t kMaxForced = 4096;  // bytes at a time
constexpr size_t kFewStacks = 1 << 12;

}  // namespace

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar, size_t history)
    : grammar_(std::move(grammar)),
      reader_(grammar_->automaton(), 0),
      history_(history),
      stacks_limit_(kFewStacks) {
  const grammar::Automaton& automaton = grammar_->automaton();
  now_.places = {{automaton.rules[automaton.root].start, Stacks::kBottom, 0}};
  now_.can_end = reader_.close(&now_.places);
}

void GrammarState::mask(uint32_t* bits) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  std::fill_n(bits, grammar_->mask_words(), 0u);
  if (now_.has_ended) return;
  grammar_->add_mask(now_.places, reader_, bits);
  if (!now_.can_end) return;
  for (const int32_t end : vocabulary.ends()) {
    bits[static_cast<uint32_t>(end) / 32] |= 1u << (static_cast<uint32_t>(end) % 32);
  }
}

bool GrammarState::read(StringView bytes, Moment* moment) {
  Places after;
  moment->places = now_.places;
  moment->can_end = now_.can_end;
  for (size_t i = 0; i < bytes.size(); ++i) {
    reader_.advance(moment->places, static_cast<uint8_t>(bytes.data()[i]), &after);
    moment->places.swap(after);
    moment->can_end = reader_.close(&moment->places);
    if (moment->places.empty() && !moment->can_end) return false;
  }
  return true;
}

void GrammarState::keep(Moment next) {
  past_.push_back(std::move(now_));
  if (past_.size() > history_) past_.pop_front();
  now_ = std::move(next);
  if (reader_.stacks().size() > stacks_limit_) compact();
}

// Keeps only the stacks that are in use.
void GrammarState::compact() {
  Stacks kept;
  std::unordered_map<uint32_t, uint32_t> copied;
  const auto move = [&](Moment& moment) {
    for (Place& place : moment.places) {
      place.stack = kept.copy(reader_.stacks(), place.stack, &copied);
    }
  };
  for (Moment& moment : past_) move(moment);
  move(now_);
  reader_.stacks() = std::move(kept);
  stacks_limit_ = std::max(kFewStacks, 2 * reader_.stacks().size());
}

bool GrammarState::accept(int32_t token) {
  const Vocabulary& vocabulary = grammar_->vocabulary();
  if (now_.has_ended || !vocabulary.holds(token)) return false;
  Moment next;
  if (now_.can_end && vocabulary.is_end(token)) {
    next.can_end = next.has_ended = true;
    keep(std::move(next));
    return true;
  }
  const std::string& bytes = vocabulary.bytes(token);
  if (bytes.empty() || !read({bytes.data(), bytes.size()}, &next)) return false;
  keep(std::move(next));
  return true;
}

bool GrammarState::accept_text(StringView text) {
  Moment next;
  if (now_.has_ended || !read(text, &next)) return false;
  keep(std::move(next));
  return true;
}

bool GrammarState::rewind(size_t tokens) {
  if (tokens > past_.size()) return false;
  if (tokens == 0) return true;
  past_.resize(past_.size() - tokens + 1);
  now_ = std::move(past_.back());
  past_.pop_back();
  return true;
}

namespace {

// The only byte that any place takes, or -1.
int only_byte(const grammar::Automaton& automaton, const Places& places) {
  int byte = -1;
  for (const Place& place : places) {
    for (const grammar::Edge& edge : automaton.states[place.state].edges) {
      const uint64_t count = place.count + (edge.counts ? 1 : 0);
      if (!automaton.viable(edge.target, count)) continue;
      if (edge.low != edge.high || (byte >= 0 && byte != edge.low)) return -1;
      byte = edge.low;
    }
  }
  return byte;
}

}  // namespace

void GrammarState::forced_text(std::string* text) {
  if (now_.has_ended) return;
  Places places = now_.places, after;
  bool can_end = now_.can_end;
  for (size_t i = 0; i < kMaxForced && !can_end; ++i) {
    const int byte = only_byte(grammar_->automaton(), places);
    if (byte < 0) return;
    text->push_back(static_cast<char>(byte));
    reader_.advance(places, static_cast<uint8_t>(byte), &after);
    places.swap(after);
    can_end = reader_.close(&places);
  }
}

// Whether a token that lies below `node` can go on from `places`.
bool GrammarState::extends(uint32_t node, const Places& places) {
  const grammar::TokenTrie& trie = grammar_->vocabulary().trie();
  for (uint32_t i = trie.entries()[node].children; i < trie.end_of_children(node); ++i) {
    Places after;
    reader_.advance(places, trie.byte(i), &after);
    const bool ends = reader_.close(&after);
    if (after.empty() && !ends) continue;
    if (!trie.endings_at(i).empty() || extends(i, after)) return true;
  }
  return false;
}

void GrammarState::forced(std::vector<int32_t>* tokens) {
  std::string text;
  forced_text(&text);
  if (text.empty()) return;
  const Vocabulary& vocabulary = grammar_->vocabulary();
  Moment end;
  if (!read({text.data(), text.size()}, &end)) return;
  // A token over the end of the text could be what the tokenizer writes: bytes from its start on
  // are left to the model.
  size_t settled = text.size();
  const size_t reach = std::min(text.size(), vocabulary.trie().longest());
  for (size_t tail = 1; tail <= reach; ++tail) {
    uint32_t node = 0;
    for (size_t i = text.size() - tail; i < text.size(); ++i) {
      node = vocabulary.trie().child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) break;
    }
    if (node != 0 && extends(node, end.places)) settled = text.size() - tail;
  }
  const size_t before = tokens->size();
  vocabulary.encode({text.data(), text.size()}, tokens);
  size_t at = 0, kept = before;
  while (kept < tokens->size()) {
    at += vocabulary.bytes((*tokens)[kept]).size();
    if (at > settled) break;
    ++kept;
  }
  tokens->resize(kept);
}

}  // namespace rushlight::llm
