// Runs a language model: sessions, and the texts that are generated in them.
//
//   llm::Runner runner;
//   if (!runner.open("m.pte", {}, &message).ok()) return complain(message.text());
//   std::unique_ptr<llm::Session> session = runner.new_session();
//   auto generation = session->generate(prompt, options, &message);
//   if (!generation.ok()) return complain(message.text());
//   llm::Piece piece;
//   while (generation.value()->next(&piece)) print(piece.text);
//
// Everything may be used by several threads at once, except that a session generates one text at a
// time. Sessions and generations must be destroyed before their runner, a generation before its
// session. Where memory ends, calls return MemoryAllocationFailed and change nothing, and texts
// that are computed end with it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/llm/runner/chat.h"
#include "rushlight/llm/runner/options.h"
#include "rushlight/llm/runner/request.h"
#include "rushlight/llm/runner/scheduler.h"
#include "rushlight/llm/runner/step_model.h"
#include "rushlight/llm/session/saved_session.h"
#include "rushlight/llm/session/text_codec.h"

namespace rushlight::llm {

// What a generation has made since it was asked last. The views are valid until it is asked again.
struct Piece {
  size_t choice = 0;
  Span<const Drawn> tokens;
  StringView text;
  Finish finish = Finish::None;  // of the choice
};

class Runner;
class Session;

// Texts while they are generated. Destroying it cancels what is left.
class Generation {
 public:
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Waits for news of any choice. False after the end of all; status() says whether one failed.
  // While a long prompt is read, `goes_on` is asked after each step; if it says no, the piece is
  // empty, and the next call waits on.
  bool next(Piece* piece, const std::function<bool()>& goes_on = nullptr);
  // Ends the texts at the next token. From any thread.
  void cancel();
  // After the end: why a choice failed.
  Status status(Message* message) const;
  Statistics statistics() const;
  // The stop string that ended a choice; empty if it was a token.
  StringView stopped_by(size_t choice) const;

 private:
  friend class Runner;
  friend class Session;
  explicit Generation(Scheduler* scheduler) : scheduler_(scheduler) {}

  Scheduler* scheduler_;
  Request request_;
  Outbox read_;
};

// A text that is kept: what is generated is added to it.
class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Adds the prompt, and then what is generated. Needs options.n == 1. An empty prompt goes on with
  // the text as it is.
  Result<std::unique_ptr<Generation>> generate(Span<const int32_t> prompt,
                                               const GenerateOptions& options, Message* message);
  // Replaces the text, and adds what is generated after it; the cache of what both texts begin with
  // is kept. The text stays if the call is refused.
  Result<std::unique_ptr<Generation>> generate_after(Span<const int32_t> text,
                                                     const GenerateOptions& options,
                                                     Message* message);
  // Replaces the text by `tokens`; the cache of what both begin with is kept.
  Status set_tokens(Span<const int32_t> tokens, Message* message);
  // Drops the last `count` tokens.
  Status rewind(size_t count, Message* message);
  // A session with the same text, which shares its cache.
  Result<std::unique_ptr<Session>> fork(Message* message);
  // Writes the text and its cache to a file, for Runner::restore().
  Status save(const char* path, Message* message);

  // The tokens of the text; not while one is generated.
  Result<std::vector<int32_t>> tokens(Message* message);
  // Tokens whose keys and values are in the cache.
  size_t cached();

  // What the text is computed with; nullptr: the model alone.
  std::shared_ptr<const Adapter> adapter();
  // Exchanges it. Returns InvalidState if the session has tokens: rewind() them first.
  Status set_adapter(std::shared_ptr<const Adapter> adapter, Message* message);

 private:
  friend class Runner;
  explicit Session(Runner* runner);
  Status check_idle(Message* message);
  Result<std::unique_ptr<Generation>> start(size_t kept, Span<const int32_t> prompt,
                                            const GenerateOptions& options, Message* message);

  Runner* runner_;
  Sequence sequence_;
};

struct RunnerOptions {
  SchedulerOptions scheduler;
  PageMemory* memory = nullptr;  // of the cache; nullptr: the heap
};

class Runner {
 public:
  // Takes a model; `codec` may be nullptr, and then there is no text.
  Status open(std::unique_ptr<StepModel> model, std::unique_ptr<TextCodec> codec,
              const RunnerOptions& options, Message* message);

  // nullptr if there is no memory for it.
  std::unique_ptr<Session> new_session();
  // A session from a file of Session::save(). Returns InvalidExternalData for one that is damaged,
  // or was saved with another model, adapter or type of cache.
  Result<std::unique_ptr<Session>> restore(const char* path, Message* message) {
    return restore(path, nullptr, message);
  }
  Result<std::unique_ptr<Session>> restore(const char* path, std::shared_ptr<const Adapter> adapter,
                                           Message* message);
  // Maps an adapter (llm/adapters/adapter.h). Its memory is given back when nobody has it any more:
  // sessions and generations keep theirs.
  Result<std::shared_ptr<const Adapter>> load_adapter(const char* path, Message* message) const {
    return Adapter::open(path, facts().adapters, message);
  }
  // Texts for a prompt, of which no session is kept.
  Result<std::unique_ptr<Generation>> generate(Span<const int32_t> prompt,
                                               const GenerateOptions& options, Message* message);

  // Appends the tokens of a text. Text from others is encoded without `parse_special`: it must not
  // become the tokens that structure a conversation. Returns NotSupported without a tokenizer.
  Status encode(StringView text, bool add_special, bool parse_special, std::vector<int32_t>* tokens,
                Message* message) const;

  // Appends the tokens of a conversation by the model's chat template (runner/chat.h). Returns
  // NotSupported if the program has none.
  Status encode_chat(const JsonValue& variables, std::vector<int32_t>* tokens,
                     Message* message) const;
  // Takes the model's chat template. The runner is open, and has a tokenizer.
  Status set_template(StringView source, const JsonValue& tokens, Message* message);
  const Chat& chat() const { return chat_; }

  // The model's tokens as grammars see them; made at the first call. The runner must outlive it.
  Result<std::shared_ptr<const Vocabulary>> vocabulary(Message* message);

  const ModelFacts& facts() const { return scheduler_.facts(); }
  const TextCodec* codec() const { return codec_.get(); }
  Scheduler& scheduler() { return scheduler_; }
  StepModel& model() { return *model_; }
  // Tokens that end a text unless options say otherwise.
  void set_ends(std::vector<int32_t> ends) { ends_ = std::move(ends); }
  // What the model's makers recommend; GenerateOptions are a copy of it with changes.
  const GenerateOptions& defaults() const { return defaults_; }
  void set_defaults(const GenerateOptions& defaults) { defaults_ = defaults; }

 private:
  friend class Session;
  SessionOrigin origin(const std::shared_ptr<const Adapter>& adapter);
  Status check_codec(const char* what, Message* message) const;
  Status check_room(size_t prompt, Message* message) const;
  Status check_tokens(Span<const int32_t> tokens, Message* message) const;
  Status check(const GenerateOptions& options, Message* message);
  Status check_grammar(const Grammar& grammar, Message* message);
  std::vector<int32_t> ends_of(const GenerateOptions& options) const;
  std::unique_ptr<Choice> new_choice(const Request& request, Sequence* sequence,
                                     Span<const int32_t> prompt);
  Result<std::shared_ptr<const Vocabulary>> make_vocabulary(Message* message);
  Result<std::unique_ptr<Session>> read_session(const char* path,
                                                std::shared_ptr<const Adapter> adapter,
                                                Message* message);
  Status start(Generation* generation, Sequence* sequence, size_t kept, Span<const int32_t> prompt,
               const GenerateOptions& options, Message* message);

  std::unique_ptr<StepModel> model_;
  std::unique_ptr<TextCodec> codec_;
  std::vector<int32_t> ends_;
  GenerateOptions defaults_;
  Chat chat_;
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Scheduler scheduler_;
};

}  // namespace rushlight::llm
