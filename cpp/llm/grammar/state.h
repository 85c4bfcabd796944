// One reply that a grammar constrains, token by token. A copy is a fork: it goes on by itself, and
// shares the grammar. Use by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "rushlight/llm/grammar/grammar.h"
#include "rushlight/llm/grammar/run/places.h"

namespace rushlight::llm {

class GrammarState {
 public:
  // `history`: how many tokens can be taken back.
  explicit GrammarState(std::shared_ptr<const Grammar> grammar, size_t history = 256);

  const Grammar& grammar() const { return *grammar_; }
  // One bit for each token that may come next, in words of 32; an end token's where the text may
  // end.
  void mask(uint32_t* bits);
  // Goes on by a token. False, and unchanged, if it may not come next.
  bool accept(int32_t token);
  // Goes on by a text, as one token would.
  bool accept_text(StringView text);
  // Appends the tokens that must come next: the text that is forced from here, as the tokenizer
  // writes it, up to where what follows could still change its tokens. The state stays.
  void forced(std::vector<int32_t>* tokens);
  // Appends the bytes that must come next.
  void forced_text(std::string* text);

  bool can_end() const { return now_.can_end && !now_.has_ended; }
  // The text is whole, and nothing but an end token can follow.
  bool must_end() const { return can_end() && now_.places.empty(); }
  bool has_ended() const { return now_.has_ended; }  // an end token has come

  // Takes back the last `tokens` tokens. False, and unchanged, if there are not as many in the
  // history.
  bool rewind(size_t tokens);
  size_t history() const { return past_.size(); }

 private:
  struct Moment {
    grammar::Places places;
    bool can_end = false;
    bool has_ended = false;
  };

  bool read(StringView bytes, Moment* moment);
  bool extends(uint32_t node, const grammar::Places& places);
  void keep(Moment next);
  void compact();

  std::shared_ptr<const Grammar> grammar_;
  grammar::Reader reader_;
  Moment now_;
  std::deque<Moment> past_;
  size_t history_;
  size_t stacks_limit_;
};

}  // namespace rushlight::llm
