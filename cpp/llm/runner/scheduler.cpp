#include "rushlight/llm/runner/scheduler.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/memory/guard.h"
#include "rushlight/platform/platform.h"

namespace rushlight::llm {
namespace {

constexpr size_t kMostUnread = 32;   // tokens; a text whose reader is further behind waits
constexpr size_t kTextRoom = 4096;   // bytes
constexpr size_t kUsualTexts = 32;   // at once
constexpr size_t kTextsInCache = 4;  // as long as the context, if no limit is given
constexpr size_t kPrefillRows = 128;

}  // namespace

const char* finish_name(Finish finish) {
  const char* names[] = {"", "stop", "length", "context", "cancelled", "error"};
  return names[static_cast<size_t>(finish)];
}

Status Scheduler::open(StepModel* model, const TextCodec* codec, PageMemory* memory,
                       const SchedulerOptions& options, Message* message) {
  model_ = model;
  codec_ = codec;
  facts_ = &model->facts();
  options_ = options;
  const ModelFacts& facts = *facts_;
  if (options_.cache_limit == 0) {
    options_.cache_limit = kTextsInCache * pages_for(facts.context) * facts.page_bytes;
  }
  pool_.open(facts.page_bytes, options_.cache_limit, memory);
  if (pool_.capacity() == 0 && !facts.is_encoder) {
    return message->fail(Code::InvalidArgument,
                         "cache_limit is %zu bytes, but a page of the cache, for %zu tokens, has "
                         "%zu bytes",
                         options_.cache_limit, kPageTokens, facts.page_bytes);
  }
  RL_TRY(set_texts(message));
  if (options_.prefill_rows == 0) options_.prefill_rows = kPrefillRows;
  tree_ = std::make_unique<PrefixTree>(&pool_);
  matched_.reserve(facts.context);
  sampler_.reserve(facts.vocabulary, facts.context);
  mask_.resize((facts.vocabulary + 31) / 32);
  for (std::vector<int64_t>* rows : {&tokens_, &positions_, &sequences_})
    rows->reserve(facts.batch);
  wanted_.reserve(facts.wanted);
  tables_.reserve(options_.texts);
  parts_.reserve(options_.texts);
  active_.reserve(options_.texts);
  return {};
}

// How many texts a step can have.
Status Scheduler::set_texts(Message* message) {
  const size_t rows = std::min(facts_->wanted, facts_->batch);
  const size_t most = facts_->texts > 0 ? std::min(rows, facts_->texts) : rows;
  if (options_.texts > 1 && facts_->texts == 1) {
    return message->fail(Code::InvalidArgument,
                         "texts is %zu, but the program has the cache of one text: leave texts out",
                         options_.texts);
  }
  if (options_.texts > most) {
    return message->fail(Code::InvalidArgument,
                         "texts is %zu, but a step of the program has at most %zu rows, and the "
                         "logits of %zu: give at most %zu, or export with more",
                         options_.texts, facts_->batch, facts_->wanted, most);
  }
  if (options_.texts == 0) options_.texts = std::min(kUsualTexts, most);
  return {};
}

Scheduler::Turn::Turn(Scheduler& scheduler) : scheduler_(scheduler) {
  std::unique_lock<std::mutex> lock(scheduler_.mutex_);
  ++scheduler_.asking_;
  scheduler_.changed_.wait(lock, [&] { return !scheduler_.is_taken_; });
  --scheduler_.asking_;
  scheduler_.is_taken_ = true;
}

Scheduler::Turn::~Turn() {
  const std::lock_guard<std::mutex> lock(scheduler_.mutex_);
  scheduler_.is_taken_ = false;
  scheduler_.changed_.notify_all();
}

Scheduler::Borrower::Borrower(Scheduler& scheduler) : scheduler_(scheduler) {
  const std::lock_guard<std::mutex> lock(scheduler_.mutex_);
  ++scheduler_.borrowers_;
}

Scheduler::Borrower::~Borrower() {
  {
    const Turn turn(scheduler_);
    sequences.clear();
  }
  const std::lock_guard<std::mutex> lock(scheduler_.mutex_);
  --scheduler_.borrowers_;
  scheduler_.changed_.notify_all();
}

Sequence* Scheduler::Borrower::add() {
  sequences.push_back(std::make_unique<Sequence>(&scheduler_.pool()));
  return sequences.back().get();
}

bool Scheduler::has_borrowers() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return borrowers_ > 0;
}

// A thread that waits is told of the end of each turn: it takes a step, or returns and tells so.
void Scheduler::let_step() {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t steps = steps_;
  changed_.wait(lock, [&] { return steps_ != steps || waiting_ == 0; });
}

size_t Scheduler::waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_;
}

void Scheduler::reserve(Outbox* outbox) {
  outbox->tokens.reserve(kMostUnread + 2 * kMostGuesses);
  outbox->text.reserve(kTextRoom);
}

void Scheduler::submit(Request* request, std::vector<std::unique_ptr<Choice>> choices) {
  request->statistics.submitted_ns = now_ns();
  for (const std::unique_ptr<Choice>& choice : choices) {
    reserve(&choice->fresh);
    reserve(&choice->outbox);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  inbox_.reserve(inbox_.size() + choices.size());
  request->choices = std::move(choices);
  for (const std::unique_ptr<Choice>& choice : request->choices) {
    choice->order = arrivals_++;
    inbox_.push_back({request, choice.get()});
  }
}

void Scheduler::remove(Request* request) {
  const Turn turn(*this);
  collect();
  const auto is_of = [&](const Entry& entry) { return entry.request == request; };
  for (std::vector<Entry>* list : {&queue_, &active_}) {
    list->erase(std::remove_if(list->begin(), list->end(), is_of), list->end());
  }
  for (const std::unique_ptr<Choice>& choice : request->choices) {
    if (choice->finish == Finish::None) finish({request, choice.get()}, Finish::Cancelled);
  }
}

void Scheduler::add_resting(Sequence* sequence) { resting_.push_back(sequence); }

void Scheduler::remove_resting(Sequence* sequence) {
  resting_.erase(std::remove(resting_.begin(), resting_.end(), sequence), resting_.end());
}

// What there is no memory to remember is computed again.
void Scheduler::remember(const Sequence& sequence) noexcept {
  if (sequence.cached == 0 || sequence.is_foreign) return;
  (void)has_memory_for([&] {
    tree_->insert(id_of(sequence.adapter), {sequence.tokens.data(), sequence.cached},
                  sequence.table);
  });
}

// --- reading ------------------------------------------------------------------------------------

// Needs the mutex. True if a choice has something, or if all are finished and read.
bool Scheduler::take_unread(Request* request, Outbox* outbox, int* index) {
  bool is_over = true;
  for (size_t i = 0; i < request->choices.size(); ++i) {
    Choice& choice = *request->choices[i];
    Outbox& unread = choice.outbox;
    is_over = is_over && choice.is_read;
    const bool is_end = unread.finish != Finish::None && !choice.is_read;
    if (unread.tokens.empty() && unread.text.empty() && !is_end) continue;
    outbox->tokens.clear();
    outbox->text.clear();
    std::swap(outbox->tokens, unread.tokens);
    std::swap(outbox->text, unread.text);
    outbox->finish = unread.finish;
    choice.is_read = is_end;
    *index = static_cast<int>(i);
    return true;
  }
  *index = kAllRead;
  return is_over;
}

int Scheduler::wait(Request* request, Outbox* outbox, const std::function<bool()>& goes_on) {
  std::unique_lock<std::mutex> lock(mutex_);
  int index = kAllRead;
  bool is_short = false, had_no_news = false;
  while (!take_unread(request, outbox, &index)) {
    if (had_no_news && goes_on) {
      had_no_news = false;
      lock.unlock();
      const bool is_over = !goes_on();
      lock.lock();
      is_short = is_short && borrowers_ > 0;
      if (!is_over) continue;
      index = kNoNews;
      break;
    }
    had_no_news = true;
    if (is_short) {  // it has had its step, so that let_step() does not wait for it
      is_short = false;
      changed_.wait(lock);
      continue;
    }
    if (is_taken_ || asking_ > 0) {
      ++waiting_;
      changed_.wait(lock);
      --waiting_;
      continue;
    }
    is_taken_ = true;
    lock.unlock();
    step();
    lock.lock();
    is_taken_ = false;
    ++steps_;
    changed_.notify_all();
    is_short = is_short_ && borrowers_ > 0;  // the ends of their turns wake this thread
  }
  changed_.notify_all();  // for let_step()
  return index;
}

// --- steps --------------------------------------------------------------------------------------

void Scheduler::step() noexcept {
  collect();
  admit();
  plan();
  if (!parts_.empty()) run();
  deliver();
}

void Scheduler::enqueue(Entry entry) {
  const auto is_younger = [&](const Entry& other) {
    return other.choice->order > entry.choice->order;
  };
  queue_.insert(std::find_if(queue_.begin(), queue_.end(), is_younger), entry);
}

// Needs the mutex. There is room in the queue for all texts then, as those that are computed may be
// queued again.
void Scheduler::take_new() {
  const size_t texts = queue_.size() + active_.size() + inbox_.size();
  const bool has_room = has_memory_for([&] { queue_.reserve(texts); });
  for (const Entry& entry : inbox_) {
    if (has_room) {
      enqueue(entry);
    } else {
      fail_without_memory(entry);
      entry.choice->outbox.finish = entry.choice->finish;
    }
  }
  inbox_.clear();
}

// Takes new requests in, notes which readers are behind, and ends what was cancelled.
void Scheduler::collect() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!inbox_.empty()) take_new();
    for (const std::vector<Entry>* list : {&queue_, &active_}) {
      for (const Entry& entry : *list) {
        entry.choice->is_paused = entry.choice->outbox.tokens.size() >= kMostUnread;
      }
    }
  }
  for (std::vector<Entry>* list : {&queue_, &active_}) {
    for (size_t i = list->size(); i-- > 0;) {
      const Entry entry = (*list)[i];
      if (entry.request->cancelled) finish(entry, Finish::Cancelled);
    }
  }
}

// The entry stays in its list until the end of the step.
void Scheduler::finish(Entry entry, Finish reason) noexcept {
  Choice& choice = *entry.choice;
  if (choice.finish != Finish::None) return;
  choice.finish = reason;
  choice.sequence->busy = false;
  if (choice.own != nullptr) {  // nobody goes on with it; its pages may serve others
    remember(*choice.own);
    choice.own->keep_cache(0);
  }
  entry.request->statistics.finished_ns = now_ns();
  if (codec_ == nullptr || choice.text.stop() != nullptr) return;
  if (has_memory_for([&] { choice.text.finish(&choice.fresh.text); })) return;
  choice.finish = Finish::Failed;
  choice.status = out_of_memory("write the end of the text", &choice.message);
}

// Passes what the step made on to the readers.
void Scheduler::deliver() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::vector<Entry>* list : {&queue_, &active_}) {
    for (const Entry& entry : *list) {
      Choice& choice = *entry.choice;
      Outbox& fresh = choice.fresh;
      const bool is_told = has_memory_for([&] {
        choice.outbox.tokens.insert(choice.outbox.tokens.end(), fresh.tokens.begin(),
                                    fresh.tokens.end());
        choice.outbox.text += fresh.text;
      });
      if (!is_told) fail_without_memory(entry);
      choice.outbox.finish = choice.finish;
      fresh.tokens.clear();
      fresh.text.clear();
    }
  }
  drop_finished();
}

void Scheduler::drop_finished() {
  const auto is_finished = [](const Entry& entry) { return entry.choice->finish != Finish::None; };
  for (std::vector<Entry>* list : {&queue_, &active_}) {
    list->erase(std::remove_if(list->begin(), list->end(), is_finished), list->end());
  }
}

}  // namespace rushlight::llm
