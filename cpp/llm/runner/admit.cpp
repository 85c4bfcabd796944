// Which requests are computed, and whose pages are given up when they are short.
#include <algorithm>
#include <iterator>

#include "rushlight/llm/runner/scheduler.h"
#include "rushlight/platform/platform.h"

namespace rushlight::llm {

// Pages of the texts that are computed; shared ones count for each.
size_t Scheduler::pages_in_use() const {
  size_t pages = 0;
  for (const Entry& entry : active_) pages += pages_for(entry.choice->sequence->tokens.size() + 1);
  return pages;
}

// True while another text reads in a prompt that begins with a page of this one: what it computes
// can be used then. So the texts of one request compute their prompt once.
bool Scheduler::shares_a_prompt(const Entry& entry) const {
  const std::vector<int32_t>& tokens = entry.choice->sequence->tokens;
  const size_t known = entry.choice->sequence->cached;
  return std::any_of(active_.begin(), active_.end(), [&](const Entry& other) {
    if (other.choice->is_remembered || other.choice->is_paused) return false;
    if (other.choice->sequence->is_foreign) return false;  // it is not remembered
    if (other.choice->sequence->adapter != entry.choice->sequence->adapter) return false;
    const std::vector<int32_t>& others = other.choice->sequence->tokens;
    const size_t most = std::min(tokens.size(), others.size());
    const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(most);
    const size_t equal = static_cast<size_t>(
        std::mismatch(tokens.begin(), end, others.begin()).first - tokens.begin());
    return equal >= known + kPageTokens || (equal == tokens.size() && equal > known + 1);
  });
}

bool Scheduler::may_start(const Entry& entry) {
  if (entry.choice->is_paused || active_.size() >= options_.texts) return false;
  if (active_.empty()) return true;
  const size_t pages = pages_for(entry.choice->sequence->tokens.size() + 1);
  return pages_in_use() + pages <= pool_.capacity() && !shares_a_prompt(entry);
}

void Scheduler::start(const Entry& entry) {
  Choice& choice = *entry.choice;
  Sequence& sequence = *choice.sequence;
  Statistics& figures = entry.request->statistics;
  const auto is_younger = [&](const Entry& other) { return other.choice->order > choice.order; };
  sequence.used = tick();
  const bool is_new = choice.produced == 0;
  if (figures.started_ns == 0) figures.started_ns = now_ns();
  if (is_new) push_first_forced(entry);
  if (choice.finish != Finish::None) {  // nothing is left to the model
    active_.insert(std::find_if(active_.begin(), active_.end(), is_younger), entry);
    return;
  }
  // The last token is computed in any case, for its logits.
  const size_t most = sequence.tokens.size() - 1;
  sequence.keep_cache(most);
  const size_t matched =
      tree_->match(id_of(sequence.adapter), {sequence.tokens.data(), most}, &matched_);
  if (matched > sequence.cached) {
    sequence.table.share(matched_, matched);
    sequence.cached = matched;
    sequence.is_foreign = false;
  }
  matched_.truncate(0);
  const size_t kept = model_->kept(sequence.table.sequence(), sequence.cached);
  if (is_new) figures.reused_tokens += std::min(kept, choice.prompt);
  if (!is_new) figures.recomputed_tokens += sequence.pending() - 1;
  active_.insert(std::find_if(active_.begin(), active_.end(), is_younger), entry);
}

// A text whose reader is behind makes room for one that can go on, and is queued again. It keeps
// its pages until they are short.
bool Scheduler::give_way() {
  const auto is_idle = [](const Entry& entry) {
    return entry.choice->is_paused && entry.choice->finish == Finish::None;
  };
  const auto youngest = std::find_if(active_.rbegin(), active_.rend(), is_idle);
  if (youngest == active_.rend()) return false;
  const Entry entry = *youngest;
  active_.erase(std::next(youngest).base());
  enqueue(entry);
  return true;
}

// The oldest that waits is first; no younger one passes it, but for those that wait for a prompt
// or for their reader.
void Scheduler::admit() {
  for (size_t i = 0; i < queue_.size();) {
    const Entry entry = queue_[i];
    const bool waits_for_others = entry.choice->is_paused || shares_a_prompt(entry);
    if (entry.choice->finish != Finish::None || waits_for_others) {
      ++i;
      continue;
    }
    if (!may_start(entry)) {
      if (!give_way()) break;
      continue;  // an older one, which waits for its reader, may stand here now
    }
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    start(entry);
  }
}

// --- pages --------------------------------------------------------------------------------------

// Gives up pages that no text which is computed needs. `shared_page` is one that is to be written:
// if only the tree shares it, it need not be copied.
bool Scheduler::reclaim(const uint8_t* shared_page) {
  if (shared_page != nullptr && PagePool::users(shared_page) == 2 && tree_->forget(shared_page)) {
    return true;
  }
  if (tree_->drop_page()) return true;
  Sequence* oldest = nullptr;
  for (Sequence* sequence : resting_) {
    if (sequence->busy || sequence->table.size() == 0) continue;
    if (oldest == nullptr || sequence->used < oldest->used) oldest = sequence;
  }
  if (oldest == nullptr) return reclaim_queued();
  oldest->keep_cache(0);
  return true;
}

// Gives up the pages of the youngest text that waits in the queue.
bool Scheduler::reclaim_queued() {
  for (size_t i = queue_.size(); i-- > 0;) {
    Sequence* const sequence = queue_[i].choice->sequence;
    if (sequence->table.size() == 0) continue;
    sequence->keep_cache(0);
    return true;
  }
  return false;
}

bool Scheduler::is_planned(const Choice* choice) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.choice == choice; });
}

// Takes the pages of the youngest text that this step does not compute; older than `than` are safe.
bool Scheduler::preempt(const Choice* than) {
  for (size_t i = active_.size(); i-- > 0;) {
    const Entry entry = active_[i];
    const bool may = entry.choice->order > than->order || entry.choice->is_paused;
    if (!may || entry.choice == than || is_planned(entry.choice)) continue;
    if (entry.choice->finish != Finish::None) continue;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    entry.choice->sequence->keep_cache(0);
    enqueue(entry);
    return true;
  }
  return false;
}

bool Scheduler::make_room(Sequence* sequence, size_t from, size_t to) {
  while (!sequence->table.make_writable(from, to)) {
    const size_t first = from / kPageTokens;
    const uint8_t* page = first < sequence->table.size() ? sequence->table.page(first) : nullptr;
    if (!reclaim(page)) return false;
  }
  return true;
}

}  // namespace rushlight::llm
