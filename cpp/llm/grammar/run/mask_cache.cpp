#include "rushlight/llm/grammar/run/mask_cache.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kFew = 8;          // transitions of a node before it has a table
constexpr size_t kNodeBytes = 232;  // that a node takes besides its places

}  // namespace

size_t MaskCache::KeyHash::operator()(const Key& key) const {
  return mix(mix(key.set, key.state), key.count);
}

// A token adds at most a count for each of its bytes; a call needs one more to end.
MaskCache::MaskCache(const Automaton& automaton, const TokenTrie& trie, size_t tokens,
                     size_t max_bytes)
    : automaton_(automaton),
      trie_(trie),
      words_((tokens + 31) / 32),
      max_bytes_(max_bytes),
      reader_(automaton, trie.longest() + 2),
      gathered_(words_),
      lexemes_(automaton, trie, words_),
      most_least_(automaton.rules.size()),
      scratch_(words_) {
  for (const State& state : automaton.states) {
    if (state.least == kEndless) continue;
    most_least_[state.rule] = std::max(most_least_[state.rule], state.least);
  }
  clear();
}

void MaskCache::clear() {
  reader_.stacks().clear();
  nodes_.assign(1, Node());
  node_by_hash_.clear();
  sets_.clear();
  set_by_key_.clear();
  lexemes_.clear();
  bytes_ = 0;
}

size_t MaskCache::bytes() const { return bytes_ + lexemes_.bytes() + reader_.stacks().bytes(); }

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
  for (const Place& place : places) {
    for (const Edge& edge : automaton_.states[place.state].edges) {
      for (uint32_t byte = edge.low; byte <= edge.high; ++byte) nodes_.back().bytes[byte] = true;
    }
  }
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

uint32_t MaskCache::target_of(uint32_t id, uint8_t byte) {
  Places places;
  reader_.advance(nodes_[id].places, byte, &places);
  return node_of(std::move(places));
}

uint32_t MaskCache::after(uint32_t id, uint8_t byte) {
  const uint32_t known = known_after(nodes_[id], byte);
  if (known != kUnknown) return known;
  const uint32_t target = is_simple(nodes_[id], byte) ? id : target_of(id, byte);
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

// Whether a byte leads back to the node, as most do within strings.
bool MaskCache::is_simple(const Node& node, uint8_t byte) const {
  if (node.places.size() != 1 || node.ends) return false;
  const State& state = automaton_.states[node.places[0].state];
  const Rule& rule = automaton_.rules[state.rule];
  if (!rule.is_lexeme || rule.counts || state.accepts) return false;
  return std::any_of(state.edges.begin(), state.edges.end(), [&](const Edge& edge) {
    return byte >= edge.low && byte <= edge.high && edge.target == node.places[0].state;
  });
}

void MaskCache::walk(const Exit& from, uint32_t start, TokenSet* set) {
  path_.assign(1, {trie_.nodes()[from.node].children, trie_.end_of_children(from.node), start});
  while (!path_.empty()) {
    Step& step = path_.back();
    if (step.child == step.end) {
      path_.pop_back();
      continue;
    }
    const uint32_t child = step.child++;
    ++visited_;
    const uint8_t byte = trie_.byte(child);
    if (!nodes_[step.at].bytes[byte]) continue;
    const uint32_t next = after(step.at, byte);
    if (next == kNowhere) continue;
    const TrieEntry& entry = trie_.entries()[child];
    if (takes_below(nodes_[next], child)) {
      append(trie_.endings_from(child), from, set);
      continue;
    }
    if (entry.token != TrieEntry::kNoToken) append(trie_.endings_at(child), from, set);
    if (entry.child_count == 0) continue;
    if (nodes_[next].ends) {
      set->exits.push_back(from);
      set->exits.back().node = child;
    }
    path_.push_back({trie_.nodes()[child].children, trie_.end_of_children(child), next});
  }
}

// Whether all tokens below a node of the trees, of which there are some, can be read from a place.
bool MaskCache::takes_below(const Node& at, uint32_t node) {
  constexpr size_t kSome = 8;
  if (trie_.endings_from(node).size() < kSome) return false;
  return std::any_of(at.places.begin(), at.places.end(), [this, node](const Place& place) {
    const Rule& rule = automaton_.rules[automaton_.states[place.state].rule];
    return rule.is_lexeme && lexemes_.takes_below(place.state, rule.high - place.count, node);
  });
}

void MaskCache::append(Span<const Ending> endings, const Exit& from, TokenSet* set) {
  if (!set->is_counted && !from.excludes) return gathered_.take(endings, from.lengths, set);
  for (const Ending& ending : endings) {
    if ((from.lengths >> ending.before() & 1) == 0) continue;
    if (from.excludes && set->excluded[trie_.first_byte(ending.token())]) continue;
    if (set->is_counted) {
      set->closed.push_back({ending.token(), ending.before() + from.counts});
    } else {
      gathered_.take(ending.token(), set);
    }
  }
}

uint32_t MaskCache::store(const Key& key, TokenSet set) {
  bytes_ += set.bytes() + sizeof(Key) + 64;
  const auto id = static_cast<uint32_t>(sets_.size());
  sets_.push_back(std::move(set));
  set_by_key_.emplace(key, id);
  return id;
}

// Whether the counts of a call matter to the tokens that may come.
bool MaskCache::is_counted(uint32_t rule, const Window& window) const {
  return window.low > 0 || window.high < trie_.longest() + most_least_[rule];
}

uint32_t MaskCache::set_of(const Place& place, const Window& window) {
  const uint32_t number = automaton_.states[place.state].rule;
  const Rule& rule = automaton_.rules[number];
  TokenSet set;
  set.is_counted = rule.is_lexeme && rule.counts && is_counted(number, window);
  const uint64_t lexeme_count = set.is_counted ? 1 : 0;
  const Key key = {kUnknown, place.state,
                   rule.is_lexeme ? lexeme_count : reader_.canonical(place.state, place.count)};
  const auto known = set_by_key_.find(key);
  if (known != set_by_key_.end()) return known->second;
  const uint32_t like =
      rule.is_lexeme && !set.is_counted ? lexemes_.similar(place.state) : place.state;
  if (like != place.state) {
    set = sets_[set_of({like, place.stack, place.count}, window)];
    lexemes_.adapt(place.state, like, &set);
  } else if (rule.is_lexeme) {
    lexemes_.find(place.state, &set);
  } else {
    walk({TokenTrie::kRoot, 0, kAnyLength, false},
         node_of({{place.state, Stacks::kBottom, key.count}}), &set);
    gathered_.finish(&set);
  }
  return store(key, std::move(set));
}

uint32_t MaskCache::continued(uint32_t id, uint32_t state, uint64_t count) {
  const Key key = {id, state, reader_.canonical(state, count)};
  const auto known = set_by_key_.find(key);
  if (known != set_by_key_.end()) return known->second;
  TokenSet set;
  set.is_counted = sets_[id].is_counted;
  const uint32_t start = node_of({{state, Stacks::kBottom, key.count}});
  set.excluded = sets_[id].excluded;
  for (const Exit& exit : sets_[id].exits) {
    walk(exit, start, &set);
    if (nodes_[start].ends) set.exits.push_back(exit);
  }
  if (!set.is_counted) gathered_.finish(&set);
  return store(key, std::move(set));
}

void MaskCache::add_tokens(const TokenSet& set, const Window& window, uint32_t* bits) {
  const auto add = [&](const std::vector<uint32_t>& added) {
    for (size_t i = 0; i < added.size(); ++i) bits[i] |= added[i];
  };
  if (!set.is_counted) {
    for (const uint32_t token : set.few) set_bit(bits, token);
    return add(set.bits);
  }
  if (set.text != nullptr && window.high >= set.least_of_text) {
    const uint64_t more = window.high - set.least_of_text;
    const std::vector<uint32_t>& up_to =
        set.text->up_to[std::min<uint64_t>(more, TextClass::kMaxCharacters - 1) + 1];
    if (set.begin.empty()) add(up_to);
    for (size_t i = 0; i < set.begin.size(); ++i) bits[i] |= up_to[i] & set.begin[i];
  }
  const auto end =
      std::partition_point(set.open.begin(), set.open.end(),
                           [&window](const Counted& token) { return token.counts <= window.high; });
  if (set.bits.empty() || end - set.open.begin() < set.open.end() - end) {
    for (auto at = set.open.begin(); at != end; ++at) set_bit(bits, at->token);
  } else {
    scratch_ = set.bits;
    for (auto at = end; at != set.open.end(); ++at) clear_bit(scratch_.data(), at->token);
    add(scratch_);
  }
  for (const Counted& token : set.closed) {
    if (token.counts >= window.low && token.counts <= window.high) set_bit(bits, token.token);
  }
}

void MaskCache::add_continued(uint32_t id, uint32_t stack, const Stacks& stacks,
                              const Window& window, uint32_t* bits) {
  if (sets_[id].exits.empty()) return;
  for (const Link& link : stacks.links(stack)) {
    const uint32_t next = continued(id, link.state, link.count);
    add_tokens(sets_[next], window, bits);
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
  const uint32_t id = set_of(place, window);
  add_tokens(sets_[id], window, bits);
  add_continued(id, place.stack, reader.stacks(), window, bits);
}

}  // namespace rushlight::llm::grammar
