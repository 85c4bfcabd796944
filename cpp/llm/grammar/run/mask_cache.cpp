#include "rushlight/llm/grammar/run/mask_cache.h"

#include <algorithm>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kFew = 8;              // transitions of a node before it has a table
constexpr size_t kNodeBytes = 200;      // that a node takes besides its places
constexpr uint32_t kCounts = 1u << 31;  // in a row: the transition counts
constexpr uint32_t kNoCounts = UINT32_MAX;

void set_bit(uint32_t* bits, uint32_t token) { bits[token / 32] |= 1u << (token % 32); }
void clear_bit(uint32_t* bits, uint32_t token) { bits[token / 32] &= ~(1u << (token % 32)); }

}  // namespace

size_t MaskCache::KeyHash::operator()(const Key& key) const {
  return mix(mix(key.entry, key.state), key.count);
}

// A token adds at most a count for each of its bytes; a call needs one more to end.
MaskCache::MaskCache(const Automaton& automaton, const TokenTrie& trie, size_t tokens,
                     size_t max_bytes)
    : automaton_(automaton),
      trie_(trie),
      words_((tokens + 31) / 32),
      max_bytes_(max_bytes),
      reader_(automaton, trie.longest() + 2),
      path_(trie.longest() + 1),
      rows_path_(trie.longest() + 1),
      counts_path_(trie.longest() + 1),
      scratch_(words_) {
  for (const CodeRange range : {CodeRange{0x20, '"' - 1}, CodeRange{'"' + 1, '\\' - 1},
                                CodeRange{'\\' + 1, 0x7E}, CodeRange{0x80, kLastCode}}) {
    append_sequences(range, Encoding::Plain, &plain_text_);
  }
  after_calls_.resize(automaton.rules.size());
  for (const State& state : automaton.states) {
    for (const Call& call : state.calls) after_calls_[call.rule].push_back(call.after);
  }
  clear();
}

void MaskCache::clear() {
  reader_.stacks().clear();
  nodes_.assign(1, Node());
  node_by_hash_.clear();
  entries_.clear();
  entry_by_key_.clear();
  row_numbers_.assign(automaton_.states.size(), kUnknown);
  rows_.clear();
  bytes_ = 0;
}

size_t MaskCache::bytes() const { return bytes_ + reader_.stacks().bytes(); }

uint32_t MaskCache::node_of(Places places) {
  const bool ends = reader_.close(&places);
  if (places.empty() && !ends) return kNowhere;
  uint64_t hash = ends ? 1 : 0;
  for (const Place& place : places) {
    hash = mix(mix(hash, uint64_t{place.state} << 32 | place.stack), place.count);
  }
  const auto [begin, end] = node_by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (nodes_[at->second].ends == ends && nodes_[at->second].places == places) return at->second;
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  bytes_ += kNodeBytes + places.size() * sizeof(Place);
  nodes_.emplace_back();
  nodes_.back().places = std::move(places);
  nodes_.back().ends = ends;
  node_by_hash_.emplace(hash, id);
  return id;
}

uint32_t MaskCache::known_after(const Node& node, uint8_t byte) const {
  if (!node.all.empty()) return node.all[byte];
  for (const auto& [known, target] : node.few) {
    if (known == byte) return target;
  }
  return kUnknown;
}

// Whether nothing changes, as within strings.
bool MaskCache::loops(const Node& node, uint8_t byte) {
  if (node.places.size() != 1 || node.ends) return false;
  const State& state = automaton_.states[node.places[0].state];
  const Rule& rule = automaton_.rules[state.rule];
  return rule.is_lexeme && !rule.counts && !state.accepts &&
         row_of(node.places[0].state)[byte] == node.places[0].state;
}

uint32_t MaskCache::target_of(uint32_t id, uint8_t byte) {
  Places places;
  reader_.advance(nodes_[id].places, byte, &places);
  return node_of(std::move(places));
}

uint32_t MaskCache::after(uint32_t id, uint8_t byte) {
  const uint32_t known = known_after(nodes_[id], byte);
  if (known != kUnknown) return known;
  const uint32_t target = loops(nodes_[id], byte) ? id : target_of(id, byte);
  Node& node = nodes_[id];
  if (node.all.empty() && node.few.size() < kFew) {
    node.few.push_back({byte, target});
    return target;
  }
  if (node.all.empty()) {
    node.all.assign(256, kUnknown);
    bytes_ += 256 * sizeof(uint32_t);
    for (const auto& [other, its_target] : node.few) node.all[other] = its_target;
  }
  node.all[byte] = target;
  return target;
}

void MaskCache::walk(uint32_t below, uint32_t start, uint32_t counts, std::vector<Counted>* tokens,
                     std::vector<Counted>* exits) {
  const std::vector<TrieNode>& trie = trie_.nodes();
  const uint32_t base = trie[below].depth, end = trie[below].end;
  const auto table_of = [this](uint32_t id) {
    return nodes_[id].all.empty() ? nullptr : nodes_[id].all.data();
  };
  path_[0] = start;
  rows_path_[0] = table_of(start);
  for (uint32_t i = below + 1; i < end;) {
    const TrieNode& node = trie[i];
    const uint32_t depth = node.depth - base;
    const uint32_t* row = rows_path_[depth - 1];
    uint32_t next = row != nullptr ? row[node.byte] : kUnknown;
    if (next == kUnknown) {
      next = after(path_[depth - 1], node.byte);
      rows_path_[depth - 1] = table_of(path_[depth - 1]);
    }
    if (next == kNowhere) {
      i = node.end;
      continue;
    }
    if (node.token >= 0) append_twins(node.token, counts, tokens);
    ++i;
    if (i == node.end) continue;  // a leaf
    path_[depth] = next;
    rows_path_[depth] = table_of(next);
    if (nodes_[next].ends) exits->push_back({i - 1, counts});
  }
}

void MaskCache::append_twins(int32_t token, uint32_t counts, std::vector<Counted>* tokens) const {
  for (; token >= 0; token = trie_.twin(token)) {
    tokens->push_back({static_cast<uint32_t>(token), counts});
  }
}

const uint32_t* MaskCache::row_of(uint32_t state) {
  uint32_t& number = row_numbers_[state];
  if (number != kUnknown) return rows_[number].data();
  number = static_cast<uint32_t>(rows_.size());
  bytes_ += sizeof(Row);
  Row& row = rows_.emplace_back();
  row.fill(kUnknown);
  for (const Edge& edge : automaton_.states[state].edges) {
    const uint32_t next = edge.target | (edge.counts ? kCounts : 0);
    std::fill(row.begin() + edge.low, row.begin() + edge.high + 1, next);
  }
  return row.data();
}

// Whether each way to write a plain character from its byte `read` on leads from `state` back to
// `to`, and counts as every other.
bool MaskCache::returns(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to,
                        uint32_t* counts) {
  const uint32_t* row = row_of(state);
  const BytePart& part = bytes[read];
  for (uint32_t byte = part.low; byte <= part.high; ++byte) {
    const uint32_t next = row[byte];
    if (next == kUnknown) return false;
    if (byte > part.low && next == row[byte - 1]) continue;
    const bool is_last = read + 1 == bytes.size();
    if (!is_last && next >= kCounts) return false;
    if (!is_last && !returns(next, bytes, read + 1, to, counts)) return false;
    if (!is_last) continue;
    const uint32_t added = next >= kCounts ? 1 : 0;
    if ((next & ~kCounts) != to || (*counts != kNoCounts && *counts != added)) return false;
    *counts = added;
  }
  return true;
}

// Whether a text that follows a call of the rule can begin with a byte of plain tokens.
bool MaskCache::goes_on_plain(uint32_t rule) const {
  std::vector<bool> seen(automaton_.states.size());
  std::vector<uint32_t> open;
  const auto visit = [&](uint32_t state) {
    if (!seen[state]) open.push_back(state);
    seen[state] = true;
  };
  for (const uint32_t state : after_calls_[rule]) visit(state);
  while (!open.empty()) {
    const State& state = automaton_.states[open.back()];
    open.pop_back();
    for (const Edge& edge : state.edges) {
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) {
        if (trie_.plain().bytes[byte]) return true;
      }
    }
    for (const Jump& jump : state.jumps) visit(jump.target);
    for (const Call& call : state.calls) visit(automaton_.rules[call.rule].start);
    if (!state.accepts) continue;
    for (const uint32_t after : after_calls_[state.rule]) visit(after);
  }
  return false;
}

// Whether plain text, however long, changes nothing but counts. Where the call can end as well,
// nothing that follows it may go on within a plain token.
bool MaskCache::takes_plain(uint32_t number, Entry* entry) {
  uint32_t counts = kNoCounts;
  for (const ByteSequence& bytes : plain_text_) {
    if (!returns(number, bytes, 0, number, &counts)) return false;
  }
  const State& state = automaton_.states[number];
  if (state.accepts && goes_on_plain(state.rule)) return false;
  entry->counts_of_plain = counts;
  entry->least_after_plain = static_cast<uint32_t>(state.least);
  return !automaton_.rules[state.rule].counts || state.most == kEndless;
}

// One walk serves all counts: it notes how many each token needs.
void MaskCache::walk_lexeme(uint32_t state, Entry* entry) {
  const bool counting = automaton_.rules[automaton_.states[state].rule].counts;
  entry->takes_plain = takes_plain(state, entry);
  const std::vector<TrieNode>& trie = entry->takes_plain ? trie_.plain().others : trie_.nodes();
  drawn_.clear();
  rows_path_[0] = row_of(state);
  counts_path_[0] = 0;
  for (uint32_t i = 1; i < trie.size();) {
    const TrieNode& node = trie[i];
    const uint32_t next = rows_path_[node.depth - 1u][node.byte];
    if (next == kUnknown) {
      i = node.end;
      continue;
    }
    const State& reached = automaton_.states[next & ~kCounts];
    const uint32_t counts = counts_path_[node.depth - 1u] + (next >= kCounts ? 1 : 0);
    if (node.token >= 0) {
      const bool is_open = !counting || reached.most == kEndless;
      const auto needed = counting ? counts + static_cast<uint32_t>(reached.least) : 0;
      append_twins(node.token, needed, is_open ? &drawn_ : &entry->closed);
    }
    ++i;
    const bool is_leaf = trie_.nodes()[node.whole].end == node.whole + 1;
    if (reached.accepts && !is_leaf) entry->exits.push_back({node.whole, counts});
    if (i == node.end) continue;
    rows_path_[node.depth] = row_of(next & ~kCounts);
    counts_path_[node.depth] = counts;
  }
  if (counting) sort_by_counts(drawn_, &entry->open);
  set_bits(drawn_, entry);
  if (!counting && entry->bits.empty()) entry->open = drawn_;
}

void MaskCache::sort_by_counts(const std::vector<Counted>& tokens, std::vector<Counted>* sorted) {
  std::vector<uint32_t> starts(trie_.longest() + 4, 0);
  const auto slot = [&starts](const Counted& token) {
    return std::min<size_t>(token.counts, starts.size() - 2);
  };
  for (const Counted& token : tokens) ++starts[slot(token) + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  sorted->resize(tokens.size());
  for (const Counted& token : tokens) (*sorted)[starts[slot(token)]++] = token;
}

// Where there are many tokens, their bits are added faster than they are.
void MaskCache::set_bits(const std::vector<Counted>& tokens, Entry* entry) const {
  if (entry->takes_plain) {
    entry->bits = trie_.plain().bits;
  } else if (tokens.size() * 16 > words_ * 32) {
    entry->bits.assign(words_, 0);
  } else {
    return;
  }
  for (const Counted& token : tokens) set_bit(entry->bits.data(), token.what);
}

uint32_t MaskCache::store(const Key& key, Entry entry) {
  entry.closed.shrink_to_fit();
  entry.exits.shrink_to_fit();
  bytes_ += sizeof(Entry) + 64 + entry.bits.size() * sizeof(uint32_t) +
            (entry.open.size() + entry.closed.size() + entry.exits.size()) * sizeof(Counted);
  const auto id = static_cast<uint32_t>(entries_.size());
  entries_.push_back(std::move(entry));
  entry_by_key_.emplace(key, id);
  return id;
}

uint32_t MaskCache::entry_of(uint32_t state, uint64_t count) {
  const Rule& rule = automaton_.rules[automaton_.states[state].rule];
  const Key key = {kUnknown, state, rule.is_lexeme ? 0 : reader_.canonical(state, count)};
  const auto known = entry_by_key_.find(key);
  if (known != entry_by_key_.end()) return known->second;
  Entry entry;
  if (rule.is_lexeme) {
    walk_lexeme(state, &entry);
  } else {
    const uint32_t start = node_of({{state, Stacks::kBottom, key.count}});
    drawn_.clear();
    walk(0, start, 0, &drawn_, &entry.exits);
    set_bits(drawn_, &entry);
    if (entry.bits.empty()) entry.open = drawn_;
  }
  return store(key, std::move(entry));
}

uint32_t MaskCache::continued(uint32_t id, uint32_t state, uint64_t count) {
  const Key key = {id, state, reader_.canonical(state, count)};
  const auto known = entry_by_key_.find(key);
  if (known != entry_by_key_.end()) return known->second;
  Entry entry;
  const uint32_t start = node_of({{state, Stacks::kBottom, key.count}});
  const std::vector<Counted> exits = entries_[id].exits;
  for (const Counted& exit : exits) {
    walk(exit.what, start, exit.counts, &entry.closed, &entry.exits);
    if (nodes_[start].ends) entry.exits.push_back(exit);
  }
  return store(key, std::move(entry));
}

void MaskCache::add_tokens(const Entry& entry, const Window& window, uint32_t* bits) {
  const auto fits = [&window](const Counted& token) { return token.counts <= window.high; };
  const auto end = std::partition_point(entry.open.begin(), entry.open.end(), fits);
  const std::vector<PlainTokens::Token>& plain = trie_.plain().tokens;
  const auto plain_fits = [&](const PlainTokens::Token& token) {
    return entry.least_after_plain + entry.counts_of_plain * token.characters <= window.high;
  };
  const auto plain_begin = entry.takes_plain ? plain.begin() : plain.end();
  const auto plain_end = std::partition_point(plain_begin, plain.end(), plain_fits);
  const auto kept = (end - entry.open.begin()) + (plain_end - plain_begin);
  const auto left_out = (entry.open.end() - end) + (plain.end() - plain_end);
  if (!entry.bits.empty() && left_out == 0) {
    for (size_t i = 0; i < words_; ++i) bits[i] |= entry.bits[i];
  } else if (!entry.bits.empty() && left_out < kept) {
    scratch_ = entry.bits;
    for (auto at = end; at != entry.open.end(); ++at) clear_bit(scratch_.data(), at->what);
    for (auto at = plain_end; at != plain.end(); ++at) clear_bit(scratch_.data(), at->token);
    for (size_t i = 0; i < words_; ++i) bits[i] |= scratch_[i];
  } else {
    for (auto at = entry.open.begin(); at != end; ++at) set_bit(bits, at->what);
    for (auto at = plain_begin; at != plain_end; ++at) set_bit(bits, at->token);
  }
  for (const Counted& token : entry.closed) {
    if (token.counts >= window.low && token.counts <= window.high) set_bit(bits, token.what);
  }
}

void MaskCache::add_continued(uint32_t id, uint32_t stack, const Stacks& stacks,
                              const Window& window, uint32_t* bits) {
  if (entries_[id].exits.empty()) return;
  for (const Link& link : stacks.links(stack)) {
    const uint32_t next = continued(id, link.state, link.count);
    add_tokens(entries_[next], window, bits);
    add_continued(next, link.parent, stacks, window, bits);
  }
}

void MaskCache::add_mask(const Place& place, const Reader& reader, uint32_t* bits) {
  if (bytes() > max_bytes_) clear();
  const Rule& rule = automaton_.rules[automaton_.states[place.state].rule];
  Window window;
  if (rule.counts && rule.is_lexeme) {
    window.low = rule.low > place.count ? rule.low - place.count : 0;
    window.high = rule.high == kEndless ? kEndless : rule.high - place.count;
  }
  const uint32_t id = entry_of(place.state, place.count);
  add_tokens(entries_[id], window, bits);
  add_continued(id, place.stack, reader.stacks(), window, bits);
}

}  // namespace rushlight::llm::grammar
