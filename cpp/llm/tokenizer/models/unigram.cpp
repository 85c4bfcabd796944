#include "rushlight/llm/tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

// How scores are added: in double or single precision; or in double precision, and the best score
// but one at each position is kept to tell near ties.
enum class Sums { Double, Single, Compared };

// The pieces of tables of version 2: a trie of characters.
class CharacterPieces {
 public:
  CharacterPieces(const Table& table, StringView, const Letter* letters)
      : trie_(table.piece_trie), letters_(letters), longest_(table.settings.longest_piece) {}

  // The child of `node` for letter i, or 0.
  uint32_t child(uint32_t node, size_t i) const { return trie_.child(node, letters_[i].label); }
  bool ends_at(uint32_t node) const { return (trie_.nodes[node].base & kEndsPiece) != 0; }
  double score(uint32_t node) const { return trie_.nodes[node].score; }
  uint32_t token(uint32_t node) const { return trie_.tokens[node]; }
  size_t longest() const { return longest_; }

 private:
  const PieceTrie& trie_;
  const Letter* letters_;
  size_t longest_;
};

// The pieces of tables of version 1: a trie of bytes.
class BytePieces {
 public:
  BytePieces(const Table& table, StringView text, const Letter* letters)
      : table_(table), text_(text), letters_(letters) {}

  uint32_t child(uint32_t node, size_t i) const {
    for (size_t at = letters_[i].begin; at < letters_[i + 1].begin; ++at) {
      node = table_.model.child(node, static_cast<uint8_t>(text_.data()[at]));
      if (node == 0) break;
    }
    return node;
  }
  bool ends_at(uint32_t node) const { return token(node) != kNone; }
  double score(uint32_t node) const { return table_.scores[token(node)]; }
  uint32_t token(uint32_t node) const { return table_.model.values[node]; }
  size_t longest() const { return text_.size(); }

 private:
  const Table& table_;
  StringView text_;
  const Letter* letters_;
};

// Fills `letters` with the characters of `text` and one for its end; returns their number without
// the end.
size_t read_letters(const Table& table, StringView text, std::vector<Letter>* letters) {
  if (letters->size() <= text.size()) letters->resize(text.size() + 1);
  Letter* letter = letters->data();
  for (size_t i = 0; i < text.size(); ++letter) {
    const Point point = read_point(text.data() + i, text.size() - i);
    *letter = {i, table.piece_trie.label(point.code)};
    i += point.bytes;
  }
  *letter = {text.size(), 0};
  return static_cast<size_t>(letter - letters->data());
}

template <Sums sums, class Pieces>
class Search {
 public:
  Search(const Table& table, StringView text, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table),
        text_(text),
        size_(read_letters(table, text, &scratch->letters)),
        letters_(scratch->letters.data()),
        pieces_(table, text, letters_),
        unknown_score_(table.scores[table.settings.vocabulary]),
        paths_(scratch->paths),
        out_(out) {}

  // Where no piece reaches beyond a position, the best path to it is final: it is given out, and
  // the search goes on from there. Returns its score after a text of the score `before`.
  double run(double before) {
    restart(0, before);
    for (size_t i = 0; i < size_; ++i) {
      if (i == reach_ && i > base_) {
        const double score = paths_[i - base_].score;
        emit(i);
        restart(i, score);
      }
      extend(i);
    }
    const double score = paths_[size_ - base_].score;
    emit(size_);
    end_unknown();
    return score;
  }

  // Of the best path, the least difference to another one at any position, and the greatest score.
  double difference() const { return difference_; }
  double greatest() const { return greatest_; }
  bool has_unknown() const { return has_unknown_; }
  size_t size() const { return size_; }

 private:
  void restart(size_t base, double score) {
    base_ = reach_ = base;
    if (paths_.empty()) paths_.resize(kFirstPaths);
    paths_[0] = {score, kWorst, kNone, 0};
  }

  // Adds the paths by the pieces that begin at letter `begin`.
  void extend(size_t begin) {
    const double score = paths_[begin - base_].score;
    const size_t last = std::min(size_, begin + pieces_.longest());
    bool has_letter = false;
    uint32_t node = 0;
    for (size_t end = begin; end < last;) {
      node = pieces_.child(node, end++);
      if (node == 0) break;
      if (!pieces_.ends_at(node)) continue;
      add(begin, end, pieces_.score(node) + score, node);
      has_letter |= end == begin + 1;
    }
    if (!has_letter) add(begin, begin + 1, unknown_score_ + score, 0);
  }

  void add(size_t begin, size_t end, double score, uint32_t node) {
    if constexpr (sums == Sums::Single) score = static_cast<float>(score);
    if constexpr (sums == Sums::Compared) greatest_ = std::max(greatest_, std::fabs(score));
    if (reach_ < end) reach(end);
    BestPath& path = paths_[end - base_];
    if (path.begin != kNone && score <= path.score) {
      if constexpr (sums == Sums::Compared) path.second = std::max(path.second, score);
      return;
    }
    if constexpr (sums == Sums::Compared) path.second = path.begin != kNone ? path.score : kWorst;
    path.score = score;
    path.begin = static_cast<uint32_t>(begin - base_);
    path.node = node;
  }

  void reach(size_t end) {
    if (paths_.size() <= end - base_) paths_.resize(2 * (end - base_));
    while (reach_ < end) paths_[++reach_ - base_] = kNoPath;
  }

  // Gives out the best path to `end`, which is read from its end: first it is turned around, so
  // that each of its positions names the next one.
  void emit(size_t end) {
    uint32_t next = kNone;
    for (auto i = static_cast<uint32_t>(end - base_); i > 0;) {
      if constexpr (sums == Sums::Compared) {
        difference_ = std::min(difference_, paths_[i].score - paths_[i].second);
      }
      const uint32_t begin = paths_[i].begin;
      paths_[i].begin = next;
      next = i;
      i = begin;
    }
    for (size_t from = base_; next != kNone; next = paths_[next].begin) {
      const uint32_t node = paths_[next].node;
      const uint32_t token = node != 0 ? pieces_.token(node) : kNone;
      const size_t to = base_ + next;
      if (token == kNone || token == table_.settings.unknown) {
        has_unknown_ = true;
        if (unknown_begin_ == unknown_end_) unknown_begin_ = from;
        unknown_end_ = to;
      } else {
        end_unknown();
        out_->push_back(static_cast<int32_t>(token));
      }
      from = to;
    }
  }

  // Neighbouring unknown characters are one; tokenizers looks for their text in the vocabulary.
  void end_unknown() {
    if (unknown_begin_ == unknown_end_) return;
    const uint32_t token = sums == Sums::Double ? whole(unknown_begin_, unknown_end_) : kNone;
    if (token != kNone) {
      out_->push_back(static_cast<int32_t>(token));
    } else {
      const size_t begin = letters_[unknown_begin_].begin, end = letters_[unknown_end_].begin;
      append_unknown(table_, {text_.data() + begin, end - begin}, out_);
    }
    unknown_begin_ = unknown_end_;
  }
  uint32_t whole(size_t begin, size_t end) const {
    uint32_t node = 0;
    for (size_t i = begin; i < end; ++i) {
      node = pieces_.child(node, i);
      if (node == 0) return kNone;
    }
    return pieces_.ends_at(node) ? pieces_.token(node) : kNone;
  }

  static constexpr double kWorst = -std::numeric_limits<double>::infinity();
  static constexpr BestPath kNoPath = {0, kWorst, kNone, 0};
  static constexpr size_t kFirstPaths = 64;

  const Table& table_;
  StringView text_;
  size_t size_;  // in letters, as are all positions
  const Letter* letters_;
  Pieces pieces_;
  double unknown_score_;
  std::vector<BestPath>& paths_;  // to each position from base_ on
  std::vector<int32_t>* out_;
  size_t base_ = 0, reach_ = 0;
  size_t unknown_begin_ = 0, unknown_end_ = 0;
  double difference_ = -kWorst, greatest_ = 0;
  bool has_unknown_ = false;
};

// Calls `use` with a search.
template <Sums sums, class Use>
void search(const Table& table, StringView word, Scratch* scratch, std::vector<int32_t>* out,
            const Use& use) {
  if (!table.piece_trie.empty()) {
    use(Search<sums, CharacterPieces>(table, word, scratch, out));
  } else {
    use(Search<sums, BytePieces>(table, word, scratch, out));
  }
}

}  // namespace

void encode_unigram(const Table& table, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out) {
  if (word.empty()) return;
  search<Sums::Double>(table, word, scratch, out, [](auto best) { best.run(0); });
}

void encode_unigram_after(const Table& table, StringView word, double* score, Scratch* scratch,
                          std::vector<int32_t>* out) {
  if (word.empty()) return;
  search<Sums::Single>(table, word, scratch, out, [&](auto best) { *score = best.run(*score); });
}

// In single precision a sum of n scores is wrong by at most n * 2^-24 of the greatest sum on the
// way, that is of `before` + greatest. The same path wins if the difference is more than twice
// that.
double encode_unigram_anywhere(const Table& table, StringView word, Scratch* scratch,
                               std::vector<int32_t>* out) {
  constexpr double kTwiceRounding = 1.01 / (1 << 23);
  double limit = -1;
  if (word.empty()) return limit;
  search<Sums::Compared>(table, word, scratch, out, [&](auto best) {
    best.run(0);
    const double longest = static_cast<double>(best.size()) * kTwiceRounding;
    if (!best.has_unknown()) limit = best.difference() / longest - best.greatest();
  });
  return limit;
}

}  // namespace rushlight::llm
