#include "rushlight/llm/grammar/run/mask_cache.h"

#include <algorithm>
#include <utility>

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
      exits_path_(trie.longest() + 1),
      states_path_(trie.longest() + 1),
      scratch_(words_) {
  for (const TextClass& text : trie.classes()) {
    ways_.emplace_back();
    for (const CodeRange& range : text.codes) {
      append_sequences(range, Encoding::Plain, &ways_.back());
    }
  }
  append_sequences({0x80, kLastCode}, Encoding::Plain, &beyond_ascii_);
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
  rows_.clear();
  rows_.resize(automaton_.states.size());
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
         row_of(node.places[0].state).next[byte] == node.places[0].state;
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
    if (node.token >= 0) append_tokens(node, counts, tokens);
    ++i;
    if (i == node.end) continue;  // a leaf
    path_[depth] = next;
    rows_path_[depth] = table_of(next);
    if (nodes_[next].ends) exits->push_back({i - 1, counts});
  }
}

void MaskCache::append_tokens(const TrieNode& node, uint32_t counts,
                              std::vector<Counted>* tokens) const {
  tokens->push_back({static_cast<uint32_t>(node.token), counts});
  if (!node.has_twin) return;
  for (int32_t twin = trie_.twin(node.token); twin >= 0; twin = trie_.twin(twin)) {
    tokens->push_back({static_cast<uint32_t>(twin), counts});
  }
}

const MaskCache::Row& MaskCache::row_of(uint32_t state) {
  std::unique_ptr<Row>& row = rows_[state];
  if (row != nullptr) return *row;
  bytes_ += sizeof(Row);
  row = std::make_unique<Row>();
  row->next.fill(kUnknown);
  for (const Edge& edge : automaton_.states[state].edges) {
    const uint32_t next = edge.target | (edge.counts ? kCounts : 0);
    std::fill(row->next.begin() + edge.low, row->next.begin() + edge.high + 1, next);
  }
  row->loops = loops_of(state, *row);
  return *row;
}

uint64_t MaskCache::loops_of(uint32_t state, const Row& row) {
  uint64_t changing = kBroken;
  for (uint8_t byte = 0; byte < 128; ++byte) {
    if (row.next[byte] != state) changing |= kind_of_ascii(byte);
  }
  uint32_t counts = 0;
  for (const ByteSequence& bytes : beyond_ascii_) {
    if ((changing & kBeyondAscii) != 0) break;
    if (!leads_to(state, bytes, 0, state, &counts)) changing |= kBeyondAscii;
  }
  return ~changing;
}

// Whether each way to write characters, from their byte `read` on, leads from `state` to `to`, and
// counts as every other.
bool MaskCache::leads_to(uint32_t state, const ByteSequence& bytes, size_t read, uint32_t to,
                         uint32_t* counts) {
  const std::array<uint32_t, 256>& row = row_of(state).next;
  const BytePart& part = bytes[read];
  for (uint32_t byte = part.low; byte <= part.high; ++byte) {
    const uint32_t next = row[byte];
    if (next == kUnknown) return false;
    if (byte > part.low && next == row[byte - 1]) continue;
    const bool is_last = read + 1 == bytes.size();
    if (!is_last && next >= kCounts) return false;
    if (!is_last && !leads_to(next, bytes, read + 1, to, counts)) return false;
    if (!is_last) continue;
    const uint32_t added = next >= kCounts ? 1 : 0;
    if ((next & ~kCounts) != to || (*counts != kNoCounts && *counts != added)) return false;
    *counts = added;
  }
  return true;
}

const MaskCache::Following& MaskCache::following(uint32_t rule) {
  const auto [known, is_new] = following_.try_emplace(rule);
  Following& made = known->second;
  if (!is_new) return made;
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
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) made.bytes[byte] = true;
    }
    for (const Jump& jump : state.jumps) visit(jump.target);
    for (const Call& call : state.calls) visit(automaton_.rules[call.rule].start);
    if (!state.accepts) continue;
    for (const uint32_t after : after_calls_[state.rule]) visit(after);
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!made.bytes[byte]) continue;
    made.kinds |= byte < 128 ? kind_of_ascii(static_cast<uint8_t>(byte)) : kBeyondAscii | kBroken;
  }
  return made;
}

// Whether text of the class, however long, leads to one state and changes nothing but counts. Where
// the call can end there as well, nothing that follows it may go on within a token of the class.
bool MaskCache::takes_text(uint32_t number, size_t which, Entry* entry) {
  uint32_t to = number, counts = kNoCounts;
  for (const BytePart& part : ways_[which][0]) {
    const uint32_t next = row_of(to).next[part.low];
    if (next == kUnknown) return false;
    to = next & ~kCounts;
  }
  for (const ByteSequence& bytes : ways_[which]) {
    if (!leads_to(number, bytes, 0, to, &counts)) return false;
    if (to != number && !leads_to(to, bytes, 0, to, &counts)) return false;
  }
  const State& state = automaton_.states[to];
  const TextClass& text = trie_.classes()[which];
  if (state.accepts) {
    const Following& after = following(state.rule);
    for (size_t byte = 0; byte < after.bytes.size(); ++byte) {
      if (after.bytes[byte] && text.bytes[byte]) return false;
    }
  }
  if (automaton_.rules[state.rule].counts && state.most != kEndless) return false;
  entry->text = &text;
  entry->counts_of_text = counts;
  entry->least_after_text = static_cast<uint32_t>(state.least);
  return true;
}

// One walk serves all counts: it notes how many each token needs.
void MaskCache::walk_lexeme(uint32_t state, Entry* entry) {
  const uint32_t rule = automaton_.states[state].rule;
  const bool counting = automaton_.rules[rule].counts;
  for (size_t i = 0; i < ways_.size() && !takes_text(state, i, entry); ++i) {
  }
  const std::vector<PartNode>* part = entry->text != nullptr ? &entry->text->others : nullptr;
  const size_t size = part != nullptr ? part->size() : trie_.nodes().size();
  drawn_.clear();
  states_path_[0] = &row_of(state);
  counts_path_[0] = 0;
  exits_path_[0] = kUnknown;
  for (size_t i = 1; i < size;) {
    const uint32_t whole = part != nullptr ? (*part)[i].whole : static_cast<uint32_t>(i);
    const TrieNode& node = trie_.nodes()[whole];
    const uint32_t end = part != nullptr ? (*part)[i].end : node.end;
    const uint32_t above = node.depth - 1u, depth = node.depth;
    if (exits_path_[above] != kUnknown && following(rule).bytes[node.byte]) {
      entry->exits.push_back({std::exchange(exits_path_[above], kUnknown), counts_path_[above]});
    }
    const uint32_t next = states_path_[above]->next[node.byte];
    if (next == kUnknown) {
      i = end;
      continue;
    }
    const State& reached = automaton_.states[next & ~kCounts];
    const Row& row = row_of(next & ~kCounts);
    if (!counting && (node.kinds_below & ~row.loops) == 0 &&
        (!reached.accepts || (node.kinds_below & following(rule).kinds) == 0)) {
      append_all_from(node, entry);
      i = end;
      continue;
    }
    const uint32_t counts = counts_path_[above] + (next >= kCounts ? 1 : 0);
    if (node.token >= 0) {
      const bool is_open = !counting || reached.most == kEndless;
      const auto needed = counting ? counts + static_cast<uint32_t>(reached.least) : 0;
      append_tokens(node, needed, is_open ? &drawn_ : &entry->closed);
    }
    ++i;
    if (i == end) continue;
    states_path_[depth] = &row;
    counts_path_[depth] = counts;
    exits_path_[depth] = reached.accepts ? whole : kUnknown;
  }
  if (counting) sort_by_counts(drawn_, &entry->open);
  set_bits(drawn_, entry);
  if (!counting && entry->bits.empty()) entry->open = drawn_;
}

// Few tokens are listed, as others are; many are set at once.
void MaskCache::append_all_from(const TrieNode& node, Entry* entry) {
  const Span<const uint32_t> tokens = trie_.tokens_from(node);
  if (tokens.size() * 64 <= words_ * 32) {
    for (const uint32_t token : tokens) drawn_.push_back({token, 0});
    return;
  }
  if (entry->bits.empty()) entry->bits.assign(words_, 0);
  for (const uint32_t token : tokens) set_bit(entry->bits.data(), token);
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
  if (tokens.size() * 16 > words_ * 32 || entry->text != nullptr) entry->bits.resize(words_);
  if (entry->bits.empty()) return;
  for (const Counted& token : tokens) set_bit(entry->bits.data(), token.what);
  if (entry->text == nullptr) return;
  for (size_t i = 0; i < words_; ++i) entry->bits[i] |= entry->text->bits[i];
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
  const std::vector<TextClass::Token> none;
  const std::vector<TextClass::Token>& text = entry.text != nullptr ? entry.text->tokens : none;
  const auto text_fits = [&](const TextClass::Token& token) {
    return entry.least_after_text + entry.counts_of_text * token.characters <= window.high;
  };
  const auto text_end = std::partition_point(text.begin(), text.end(), text_fits);
  const auto kept = (end - entry.open.begin()) + (text_end - text.begin());
  const auto left_out = (entry.open.end() - end) + (text.end() - text_end);
  if (!entry.bits.empty() && left_out == 0) {
    for (size_t i = 0; i < words_; ++i) bits[i] |= entry.bits[i];
  } else if (!entry.bits.empty() && left_out < kept) {
    scratch_ = entry.bits;
    for (auto at = end; at != entry.open.end(); ++at) clear_bit(scratch_.data(), at->what);
    for (auto at = text_end; at != text.end(); ++at) clear_bit(scratch_.data(), at->token);
    for (size_t i = 0; i < words_; ++i) bits[i] |= scratch_[i];
  } else {
    for (auto at = entry.open.begin(); at != end; ++at) set_bit(bits, at->what);
    for (auto at = text.begin(); at != text_end; ++at) set_bit(bits, at->token);
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
