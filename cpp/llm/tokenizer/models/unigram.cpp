#include "rushlight/llm/tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

// How scores are added: in double or single precision; or in double precision, and the best score
// but one at each position is kept to tell near ties.
enum class Sums { Double, Single, Compared };

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// The pieces of tables of version 2: a trie of characters, which has all of a score that is in
// single precision.
template <Sums sums>
class CharacterPieces {
 public:
  CharacterPieces(const Table& table, StringView, const Letter* letters)
      : trie_(table.piece_trie),
        letters_(letters),
        scores_(table.scores),
        longest_(table.settings.longest_piece) {}

  // The child of `node` for letter i, or 0.
  uint32_t child(uint32_t node, size_t i) const { return trie_.child(node, letters_[i].label); }
  // In the precision of sums, or minus infinity.
  auto score(uint32_t node) const {
    const float score = trie_.nodes[node].score;
    if constexpr (sums == Sums::Single) {
      return score;
    } else {
      if (sums != Sums::Double || score == static_cast<float>(kWorst)) return double{score};
      return token(node) != kNone ? scores_[token(node)] : kWorst;
    }
  }
  uint32_t token(uint32_t node) const { return trie_.tokens[node]; }
  size_t longest() const { return longest_; }

 private:
  const PieceTrie& trie_;
  const Letter* letters_;
  Span<const double> scores_;
  size_t longest_;
};

// The pieces of tables of version 1: a trie of bytes.
template <class Score>
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
  Score score(uint32_t node) const {
    return static_cast<Score>(token(node) != kNone ? table_.scores[token(node)] : kWorst);
  }
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
        unknown_score_(static_cast<Score>(table.scores[table.settings.vocabulary])),
        paths_(paths(scratch)),
        seconds_(scratch->seconds),
        out_(out) {}

  // Where no piece reaches beyond a position, the best path to it is final: it is given out after a
  // while, and the search goes on from there. Returns its score after a text of the score `before`.
  double run(double before) {
    restart(0, before);
    for (size_t i = 0; i < size_; ++i) {
      if (i == reach_ && i - base_ >= kFar) {
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

  // Of the best path, the least difference to another one at any position.
  double difference() const { return difference_; }
  bool has_unknown() const { return has_unknown_; }
  size_t size() const { return size_; }

 private:
  using Score = std::conditional_t<sums == Sums::Single, float, double>;
  using Path = BestPath<Score>;
  static constexpr Score kUnreached = static_cast<Score>(kWorst);

  static std::vector<Path>& paths(Scratch* scratch) {
    if constexpr (sums == Sums::Single) {
      return scratch->single_paths;
    } else {
      return scratch->paths;
    }
  }

  void restart(size_t base, double score) {
    base_ = reach_ = base;
    clear(base, std::min(size_, base + kFar));
    paths_[0].score = static_cast<Score>(score);
  }

  // Forgets the paths to the positions from `begin` to `end`.
  void clear(size_t begin, size_t end) {
    const size_t places = end - base_ + 1;
    if (paths_.size() < places) paths_.resize(2 * places);
    std::fill(&paths_[begin - base_], &paths_[end - base_] + 1, Path{kUnreached, 0, 0});
    if constexpr (sums == Sums::Compared) {
      if (seconds_.size() < places) seconds_.resize(2 * places);
      std::fill(&seconds_[begin - base_], &seconds_[end - base_] + 1, kWorst);
    }
    cleared_ = end;
  }

  // Adds the paths by the pieces that begin at letter `begin`.
  void extend(size_t begin) {
    const size_t last = std::min(size_, begin + pieces_.longest());
    if (last > cleared_) clear(cleared_ + 1, std::min(size_, last + kFar));
    if constexpr (sums == Sums::Single) {
      if (std::fabs(paths_[begin - base_].score) > kFarthestScore) begin_anew(begin);
    }
    const auto from = static_cast<uint32_t>(begin - base_);
    const Score score = paths_[from].score;
    uint32_t node = pieces_.child(0, begin);
    uint32_t to = from + 1;
    if (node == 0 || pieces_.score(node) == kUnreached) add(from, to, unknown_score_ + score, 0);
    const auto farthest = static_cast<uint32_t>(last - base_);
    while (node != 0) {
      add(from, to, pieces_.score(node) + score, node);
      if (to >= farthest) break;
      node = pieces_.child(node, base_ + to);
      to += node != 0 ? 1 : 0;
    }
    reach_ = std::max(reach_, base_ + to);
  }

  // Takes the score of the best path to a position from all that were reached.
  void begin_anew(size_t begin) {
    const Score score = paths_[begin - base_].score;
    for (size_t i = begin; i <= reach_; ++i) paths_[i - base_].score -= score;
  }

  // Without a branch: which path is better can hardly be predicted. Where no piece ends, the score
  // is the worst.
  void add(uint32_t from, uint32_t to, Score score, uint32_t node) {
    Path& path = paths_[to];
    const Score other = path.score;
    if constexpr (sums == Sums::Compared) {
      double& second = seconds_[to];
      second = std::max(second, std::min(score, other));
    }
    const bool is_better = score > other;
    path.score = is_better ? score : other;
    path.begin = is_better ? from : path.begin;
    path.node = is_better ? node : path.node;
  }

  // Gives out the best path to `end`, which is read from its end: first it is turned around, so
  // that each of its positions names the next one.
  void emit(size_t end) {
    uint32_t next = kNone;
    for (auto i = static_cast<uint32_t>(end - base_); i > 0;) {
      if constexpr (sums == Sums::Compared) {
        difference_ = std::min(difference_, paths_[i].score - seconds_[i]);
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
    return pieces_.token(node);
  }

  static constexpr size_t kFar = 256;  // letters

  const Table& table_;
  StringView text_;
  size_t size_;  // in letters, as are all positions
  const Letter* letters_;
  Pieces pieces_;
  Score unknown_score_;
  std::vector<Path>& paths_;      // to each position from base_ on
  std::vector<double>& seconds_;  // of the best path but one to each of them
  std::vector<int32_t>* out_;
  size_t base_ = 0, reach_ = 0, cleared_ = 0;
  size_t unknown_begin_ = 0, unknown_end_ = 0;
  double difference_ = -kWorst;
  bool has_unknown_ = false;
};

// Calls `use` with a search.
template <Sums sums, class Use>
void search(const Table& table, StringView word, Scratch* scratch, std::vector<int32_t>* out,
            const Use& use) {
  if (!table.piece_trie.empty()) {
    use(Search<sums, CharacterPieces<sums>>(table, word, scratch, out));
  } else {
    using Score = std::conditional_t<sums == Sums::Single, float, double>;
    use(Search<sums, BytePieces<Score>>(table, word, scratch, out));
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
// way, that is of `before` and n scores. The same path wins if the difference is more than twice
// that.
double encode_unigram_anywhere(const Table& table, StringView word, Scratch* scratch,
                               std::vector<int32_t>* out) {
  constexpr double kTwiceRounding = 1.01 / (1 << 23);
  double limit = -1;
  if (word.empty()) return limit;
  search<Sums::Compared>(table, word, scratch, out, [&](auto best) {
    best.run(0);
    const double most = static_cast<double>(best.size());
    if (best.has_unknown()) return;
    limit = best.difference() / (most * kTwiceRounding) - most * table.greatest_score;
  });
  return limit;
}

}  // namespace rushlight::llm
