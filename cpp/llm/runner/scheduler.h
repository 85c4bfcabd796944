// Advances all texts that are being generated, together: each step has the next tokens of those
// that decode and a piece of the prompts that are read in. A new request joins at the next step.
//
// There is no thread of its own. Whoever waits for tokens drives: one of the waiting threads runs a
// step for everybody while the others sleep (`wait`). So a program with one thread needs nothing
// more, and texts that nobody waits for stand still.
//
// Pages. A request is admitted, in the order of arrival, if the pages of its prompt and a token fit
// beside those of the texts that are computed. If pages run out all the same, those that only the
// prefix tree has are dropped, then the caches of sessions that rest, then that of the youngest
// text, which is queued again and computes its tokens anew when its turn comes. The oldest text
// always goes on. A text whose reader is behind gives its place to one that waits.
//
// Where memory ends inside of a step, the text that needed it fails, and the others go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "rushlight/llm/pages/page_pool.h"
#include "rushlight/llm/pages/prefix_tree.h"
#include "rushlight/llm/runner/request.h"
#include "rushlight/llm/runner/step_model.h"
#include "rushlight/llm/sampling/sampler.h"
#include "rushlight/llm/session/text_codec.h"

namespace rushlight::llm {

class Scheduler {
 public:
  // `codec` may be nullptr: then there is no text. All that is given must outlive the scheduler.
  Status open(StepModel* model, const TextCodec* codec, PageMemory* memory,
              const SchedulerOptions& options, Message* message);

  // The right to use sequences, pages and the model, which one thread has at a time. A thread that
  // asks for it has it before the next step.
  class Turn {
   public:
    explicit Turn(Scheduler& scheduler);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Scheduler& scheduler_;
  };

  // Pages that a call holds between its turns, while this object lives: a text that has too few
  // pages waits for them. A call that holds some ends by itself, and reads no text before. Without
  // the turn of the thread that destroys it, which takes one.
  class Borrower {
   public:
    explicit Borrower(Scheduler& scheduler);
    ~Borrower();
    Borrower(const Borrower&) = delete;
    Borrower& operator=(const Borrower&) = delete;

    Sequence* add();
    // They need the turn.
    std::vector<std::unique_ptr<Sequence>> sequences;

   private:
    Scheduler& scheduler_;
  };
  // Before each turn of a call that has many: returns after the next step, or at once if nobody
  // waits for one.
  void let_step();
  // Threads that wait for a step.
  size_t waiting();

  // Memory for all that a reader may be behind.
  static void reserve(Outbox* outbox);
  // Queues a request with its choices, which have their tokens, or will have them before the
  // caller's turn ends. It must be removed before it is destroyed.
  void submit(Request* request, std::vector<std::unique_ptr<Choice>> choices);
  void remove(Request* request);
  // Waits, and drives, until a choice has something to read, which is swapped into `outbox`; its
  // index, or kAllRead if all choices are finished and read. `goes_on`, if there is one, is asked
  // after each step without news, and ends the wait with kNoNews.
  static constexpr int kAllRead = -1, kNoNews = -2;
  int wait(Request* request, Outbox* outbox, const std::function<bool()>& goes_on);

  // Sequences whose cache may be given up while they rest. They need the turn.
  void add_resting(Sequence* sequence);
  void remove_resting(Sequence* sequence);
  // Remembers a sequence's pages for others that begin with the same tokens. Needs the turn.
  void remember(const Sequence& sequence) noexcept;

  const ModelFacts& facts() const { return *facts_; }
  const TextCodec* codec() const { return codec_; }
  PagePool& pool() { return pool_; }
  const PagePool& pool() const { return pool_; }
  PrefixTree& tree() { return *tree_; }
  StepModel& model() { return *model_; }
  Sampler& sampler() { return sampler_; }  // it needs the turn
  // Makes positions of a sequence writable, and gives up others' pages for it. Needs the turn.
  bool make_room(Sequence* sequence, size_t from, size_t to);
  uint64_t tick() { return ++clock_; }

 private:
  // The rows of one choice in a step.
  struct Part {
    Request* request = nullptr;
    Choice* choice = nullptr;
    size_t first_row = 0;
    size_t rows = 0;
    size_t guesses = 0;  // the last rows
    size_t first_wanted = 0;
    size_t wanted = 0;
    int32_t guessed[kMostGuesses] = {};
  };
  struct Entry {
    Request* request = nullptr;
    Choice* choice = nullptr;
  };

  // scheduler.cpp
  Status set_texts(Message* message);
  bool take_unread(Request* request, Outbox* outbox, int* index);
  void step() noexcept;
  void collect();
  void take_new();
  void deliver();
  void drop_finished();
  void enqueue(Entry entry);
  void finish(Entry entry, Finish reason) noexcept;
  // admit.cpp
  void admit();
  bool may_start(const Entry& entry);
  bool give_way();
  bool shares_a_prompt(const Entry& entry) const;
  void start(const Entry& entry);
  size_t pages_in_use() const;
  bool reclaim(const uint8_t* shared_page);
  bool reclaim_queued();
  bool preempt(const Choice* than);
  bool is_planned(const Choice* choice) const;
  // plan.cpp
  void plan();
  bool plan_choice(const Entry& entry, size_t most_rows, size_t guesses);
  void add_rows(Part* part);
  void resolve_shortage();
  bool has_borrowers();
  // advance.cpp
  void run();
  void run_alone();
  Result<Span<float>> run_parts(size_t first, size_t count, Message* message);
  void advance(const Part& part, Span<float> logits, size_t wanted) noexcept;
  void add_tokens(const Part& part, Span<float> logits, size_t wanted);
  bool choose(const Entry& entry, Span<float> logits, Drawn* drawn);
  bool push(const Entry& entry, const Drawn& drawn);
  bool ends_text(const Entry& entry, int32_t token);
  static void find_forced(Choice* choice);
  void push_forced(const Entry& entry);
  void push_first_forced(const Entry& entry) noexcept;
  bool add_text(const Entry& entry, int32_t token);
  void drop_stop(const Entry& entry);
  void make_space(const Entry& entry);
  void fail(const Entry& entry, Status status, const Message& message);
  void fail_without_memory(const Entry& entry);

  StepModel* model_ = nullptr;
  const TextCodec* codec_ = nullptr;
  const ModelFacts* facts_ = nullptr;
  SchedulerOptions options_;
  PagePool pool_;
  std::unique_ptr<PrefixTree> tree_;
  PageTable matched_{&pool_};  // what the tree knows of a text that starts
  Sampler sampler_;
  uint64_t clock_ = 0;
  uint64_t arrivals_ = 0;

  std::vector<Entry> queue_;   // by age
  std::vector<Entry> active_;  // by age
  std::vector<Sequence*> resting_;
  // Of a step.
  std::vector<Part> parts_;
  std::vector<int64_t> tokens_, positions_, sequences_, wanted_;
  std::vector<KvSequence> tables_;
  std::vector<uint32_t> mask_;
  bool is_short_ = false;  // a text waits for pages that a borrower has

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_taken_ = false;  // a thread has the turn
  size_t asking_ = 0;      // threads that wait in Turn
  size_t waiting_ = 0;     // threads that wait for a step
  size_t borrowers_ = 0;
  uint64_t steps_ = 0;
  std::vector<Entry> inbox_;
};

}  // namespace rushlight::llm
