// Which rows a step has: first the next tokens of texts that decode, with what speculation guesses,
// then pieces of prompts, in the order of arrival.
#include <algorithm>

#include "rushlight/llm/runner/scheduler.h"

namespace rushlight::llm {
namespace {

// Texts with so few tokens to compute decode; more are a prompt that is read in by pieces.
constexpr size_t kMostDecoded = 16;
// Rows beyond these cost as much as steps of their own, so that guesses do not pay.
constexpr size_t kCheapRows = 16;

}  // namespace

void Scheduler::add_rows(Part* part) {
  const Sequence& sequence = *part->choice->sequence;
  part->first_row = tokens_.size();
  part->first_wanted = wanted_.size();
  const auto table = static_cast<int64_t>(tables_.size());
  for (size_t i = 0; i < part->rows; ++i) {
    const size_t position = sequence.cached + i, pending = part->rows - part->guesses;
    tokens_.push_back(i < pending ? sequence.tokens[position] : part->guessed[i - pending]);
    positions_.push_back(static_cast<int64_t>(position));
    sequences_.push_back(table);
  }
  for (size_t i = part->rows - part->wanted; i < part->rows; ++i) {
    if (part->wanted > 0) wanted_.push_back(static_cast<int64_t>(part->first_row + i));
  }
  tables_.push_back(sequence.lent());
  parts_.push_back(*part);
}

// Adds rows of a choice; false if there are no pages for them.
bool Scheduler::plan_choice(const Entry& entry, size_t most_rows, size_t guesses) {
  Choice& choice = *entry.choice;
  Sequence& sequence = *choice.sequence;
  Part part;
  part.request = entry.request;
  part.choice = &choice;
  part.rows = std::min(sequence.pending(), most_rows);
  const bool is_whole = part.rows == sequence.pending();
  if (is_whole) {
    const size_t left = facts_->context - sequence.tokens.size();
    const size_t most = std::min({guesses, most_rows - part.rows, left});
    part.guesses = choice.speculation.propose({sequence.tokens.data(), sequence.tokens.size()},
                                              most, part.guessed);
    part.rows += part.guesses;
    part.wanted = part.guesses + 1;
  }
  const auto has_room = [&] {
    return make_room(&sequence, sequence.cached, sequence.cached + part.rows);
  };
  if (part.guesses > 0 && !has_room()) {  // no text gives way to guesses
    part.rows -= part.guesses;
    part.guesses = 0;
    part.wanted = 1;
  }
  while (!has_room()) {
    if (!preempt(&choice)) return false;
  }
  add_rows(&part);
  return true;
}

void Scheduler::plan() {
  is_short_ = false;
  parts_.clear();
  for (std::vector<int64_t>* rows : {&tokens_, &positions_, &sequences_, &wanted_}) rows->clear();
  tables_.clear();
  const auto waits = [](const Entry& entry) {
    return entry.choice->finish != Finish::None || entry.choice->is_paused;
  };
  size_t decoding = 0;
  for (const Entry& entry : active_) {
    decoding += !waits(entry) && entry.choice->sequence->pending() <= kMostDecoded ? 1 : 0;
  }
  for (const bool is_prefill : {false, true}) {
    const size_t limit = is_prefill && !parts_.empty()
                             ? std::min(facts_->batch, tokens_.size() + options_.prefill_rows)
                             : facts_->batch;
    for (size_t i = 0; i < active_.size(); ++i) {
      const Entry entry = active_[i];  // a preemption may remove later ones
      const bool decodes = entry.choice->sequence->pending() <= kMostDecoded;
      if (waits(entry) || decodes == is_prefill || is_planned(entry.choice)) continue;
      if (tokens_.size() >= limit || wanted_.size() >= facts_->wanted) break;
      const size_t room = facts_->wanted - wanted_.size() - 1;
      const size_t cheap = decodes ? kCheapRows / std::max<size_t>(decoding, 1) : 0;
      const size_t guesses = cheap > 1 ? std::min(cheap - 1, room) : 0;
      plan_choice(entry, limit - tokens_.size(), guesses);
    }
  }
  if (parts_.empty()) resolve_shortage();
}

// No text got pages: the oldest one is helped at the cost of the others, or there are too few.
void Scheduler::resolve_shortage() {
  const auto goes_on = [](const Entry& entry) {
    return entry.choice->finish == Finish::None && !entry.choice->is_paused;
  };
  const auto oldest = std::find_if(active_.begin(), active_.end(), goes_on);
  if (oldest == active_.end()) {
    // Only texts that wait for their readers hold what others wait for.
    const auto waiting = std::find_if(queue_.begin(), queue_.end(), goes_on);
    if (waiting != queue_.end()) preempt(waiting->choice);
    return;
  }
  const Entry entry = *oldest;
  if (preempt(entry.choice)) return;
  is_short_ = has_borrowers();
  if (is_short_) return;
  const bool is_limited = pool_.is_full();  // or its memory has ended before
  Message message;
  const Status status = message.fail(
      is_limited ? Code::OutOfResources : Code::MemoryAllocationFailed,
      "the text has %zu tokens, and the cache has no page left for the next: %s %zu pages of %zu "
      "tokens (%zu bytes) are in use. %s, or rewind or close sessions",
      entry.choice->sequence->tokens.size(), is_limited ? "its" : "there is no more memory, and",
      pool_.pages(), kPageTokens, is_limited ? pool_.limit() : pool_.bytes(),
      is_limited ? "Raise cache_limit" : "Give it more memory");
  fail(entry, status, message);
}

}  // namespace rushlight::llm
