// Memory that ends: of each call of the runner the n-th allocation fails, for every n, once or from
// there on. The call says so, and the runner goes on as if it had not been made. Leaks are found by
// AddressSanitizer. With the file of a program, loading one is tried as well.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "check.h"
#include "fake_runner.h"
#include "rushlight/backends/cpu/cpu_backend.h"
#include "rushlight/llm/evaluate/embed.h"
#include "rushlight/llm/evaluate/score.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/runner/load.h"

namespace {

size_t g_left = 0;         // allocations up to the one that fails; 0: none does
bool g_stays = false;      // those after it fail, too
bool g_has_ended = false;  // one has failed

void* allocate(size_t size, size_t alignment) {
  if (g_left > 0 && --g_left == 0) {
    g_has_ended = true;
    if (g_stays) g_left = 1;
    throw std::bad_alloc();
  }
  const size_t room = (size / alignment + 1) * alignment;
  void* memory = std::aligned_alloc(alignment, room);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate_or_null(size_t size, size_t alignment) noexcept {
  try {
    return allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// All forms: those of a sanitizer do not call each other.
void* operator new(size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, alignof(std::max_align_t));
}
void* operator new[](size_t size, const std::nothrow_t& none) noexcept {
  return operator new(size, none);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t& none) noexcept {
  return operator new(size, alignment, none);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return operator new(size, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr char kPath[] = "test_memory_ends.session";
constexpr size_t kMost = 20000;  // allocations of a call

// Calls `call(&message)`, which returns a Status, while its n-th allocation fails; `check(status)`
// follows each time.
template <class Call, class Check>
void each_allocation(const char* name, const Call& call, const Check& check) {
  for (const bool stays : {false, true}) {
    size_t n = 0;
    for (bool is_over = false; !is_over && n < kMost;) {
      Message message;
      g_has_ended = false;
      g_stays = stays;
      g_left = ++n;
      const Status status = call(&message);
      g_left = 0;
      is_over = !g_has_ended;
      const bool is_told = status.code() == Code::MemoryAllocationFailed && !message.empty();
      // What is only remembered for others is left out without a word.
      if (status.ok() || (is_told && !is_over)) {
        check(status);
        continue;
      }
      std::fprintf(stderr, "%s, allocation %zu%s: %s (%s)\n", name, n, stays ? " and on" : "",
                   code_name(status.code()), message.text());
      CHECK(false);
      break;
    }
    CHECK(n > 1 && n < kMost);
    if (stays) std::printf("%s: %zu allocations\n", name, n - 1);
  }
}

Status read_to_end(const Result<std::unique_ptr<Generation>>& started, Message* message) {
  if (!started.ok()) return started.status();
  Generation& generation = *started.value();
  Piece piece;
  while (generation.next(&piece)) continue;
  return generation.status(message);
}

// A runner that still generates what it did.
class Usable {
 public:
  explicit Usable(Setup* setup) : setup_(*setup), wanted_(setup->expected(prompt_, 6)) {}

  void operator()(Status) const {
    CHECK(generate(setup_.runner, prompt_, greedy(6)) == wanted_);
    CHECK(setup_.runner.scheduler().pool().pages() <= setup_.runner.scheduler().pool().capacity());
  }

 private:
  Setup& setup_;
  Tokens prompt_ = prompt_of(77, 70);
  Tokens wanted_;
};

GenerateOptions all_options() {
  GenerateOptions options = greedy(12);
  options.sampling = all_of_sampling();
  options.ignore_eos = true;
  options.echo = true;
  options.stop = {"a stop string that is longer than what lies in a string itself", "<end>"};
  options.stop_tokens = {5};
  return options;
}

void test_texts() {
  Setup setup({}, 12, 0);
  Runner& runner = setup.runner;
  const Tokens prompt = prompt_of(1, 100);
  GenerateOptions several = all_options();
  several.n = 3;
  for (const GenerateOptions& options : {greedy(20), all_options(), several}) {
    each_allocation(
        "generate",
        [&](Message* message) {
          return read_to_end(runner.generate(view(prompt), options, message), message);
        },
        Usable(&setup));
  }
}

// One of two texts is read while memory ends; the other one is whole in any case.
void test_another_text() {
  Setup setup;
  Message unused;
  const Tokens prompt = prompt_of(1, 70), other = prompt_of(2, 70);
  const Tokens wanted = setup.expected(other, 30);
  std::unique_ptr<Generation> beside;
  Piece piece;
  const auto start = [&] {
    beside = std::move(*setup.runner.generate(view(other), greedy(30), &unused));
    CHECK(beside->next(&piece));
  };
  start();
  Tokens read;
  for (const Drawn& drawn : piece.tokens) read.push_back(drawn.token);
  each_allocation(
      "generate beside another text",
      [&](Message* message) {
        return read_to_end(setup.runner.generate(view(prompt), greedy(8), message), message);
      },
      [&](Status) {
        for (const int32_t token : read_all(*beside)) read.push_back(token);
        // The model itself may have had no memory, for both.
        const bool has_failed = !beside->status(&unused).ok();
        CHECK(has_failed || read == wanted);
        CHECK(std::equal(read.begin(), read.end(), wanted.begin()));
        beside.reset();
        start();
        read.clear();
        for (const Drawn& drawn : piece.tokens) read.push_back(drawn.token);
      });
}

void test_grammars() {
  FakeOptions fake;
  fake.vocabulary = 128;
  Setup setup(fake);
  Runner& runner = setup.runner;
  Message message;
  const Usable usable(&setup);
  const char schema[] = R"({"type": "object", "properties": {"name": {"type": "string"},
      "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
      "required": ["name", "numbers"], "additionalProperties": false})";
  auto fresh = std::make_unique<Setup>(fake);
  each_allocation(
      "vocabulary", [&](Message* why) { return fresh->runner.vocabulary(why).status(); },
      [&](Status status) {
        CHECK(fresh->runner.vocabulary(&message).ok());
        fresh = std::make_unique<Setup>(fake);
        usable(status);
      });
  const auto vocabulary = runner.vocabulary(&message);
  CHECK(vocabulary.ok());
  const auto compile = [&](Message* why) -> Result<std::shared_ptr<const Grammar>> {
    const Result<JsonValue> json = parse_json({schema, sizeof(schema) - 1}, why);
    if (!json.ok()) return json.status();
    return Grammar::from_json_schema(json.value(), vocabulary.value(), {}, why);
  };
  each_allocation("grammar", [&](Message* why) { return compile(why).status(); }, usable);
  GenerateOptions options = greedy(40);
  Tokens wanted;
  const Tokens prompt = prompt_of(1, 10);
  each_allocation(
      "generate under a grammar",
      [&](Message* why) {
        // Its masks are made while the text is.
        const Result<std::shared_ptr<const Grammar>> grammar = compile(why);
        if (!grammar.ok()) return grammar.status();
        options.grammar = grammar.value();
        return read_to_end(runner.generate(view(prompt), options, why), why);
      },
      [&](Status) {
        if (options.grammar == nullptr) return;
        const Tokens text = generate(runner, prompt, options);
        if (wanted.empty()) wanted = text;
        CHECK(!text.empty() && text == wanted);
        options.grammar = nullptr;
      });
}

// A session that still has its text, and goes on with it.
class Rested {
 public:
  const Tokens base = prompt_of(1, 150), more = prompt_of(2, 80);
  Tokens joined = base;
  std::unique_ptr<Session> session;

  explicit Rested(Setup* setup) : session(setup->runner.new_session()), usable_(setup) {
    joined.insert(joined.end(), more.begin(), more.end());
    after_ = setup->expected(joined, 5);
    CHECK(session->set_tokens(view(base), &unused_).ok());
  }

  void operator()(Status status) {
    usable_(status);
    const Tokens text = *session->tokens(&unused_);
    CHECK(text.size() >= base.size() && std::equal(base.begin(), base.end(), text.begin()));
    CHECK(session->set_tokens(view(base), &unused_).ok());
    auto generation = session->generate(view(more), greedy(5), &unused_);
    CHECK(generation.ok() && read_all(**generation) == after_);
    generation->reset();
    CHECK(session->set_tokens(view(base), &unused_).ok());
  }

 private:
  Usable usable_;
  Message unused_;
  Tokens after_;
};

void test_texts_of_sessions() {
  Setup setup({}, 12, 0);
  Rested rested(&setup);
  Session& session = *rested.session;
  const auto goes_on = [&](Status status) { rested(status); };
  GenerateOptions options = all_options();
  options.context_full = ContextFull::Shift;
  options.keep = 10;
  each_allocation(
      "generate in a session",
      [&](Message* message) {
        return read_to_end(session.generate(view(rested.more), options, message), message);
      },
      goes_on);
  each_allocation(
      "generate after messages",
      [&](Message* message) {
        return read_to_end(session.generate_after(view(rested.joined), options, message), message);
      },
      goes_on);
  each_allocation(
      "set_tokens and tokens",
      [&](Message* message) {
        const Status status = session.set_tokens(view(rested.joined), message);
        return status.ok() ? session.tokens(message).status() : status;
      },
      goes_on);
}

void test_sessions() {
  Setup setup({}, 12, 0);
  Runner& runner = setup.runner;
  Message unused;
  {
    Rested rested(&setup);
    const auto goes_on = [&](Status status) { rested(status); };
    each_allocation(
        "fork", [&](Message* message) { return rested.session->fork(message).status(); }, goes_on);
    each_allocation(
        "new_session",
        [&](Message* message) {
          const Code none = Code::MemoryAllocationFailed;
          return runner.new_session() != nullptr ? Status() : message->fail(none, "no session");
        },
        goes_on);
    each_allocation(
        "save", [&](Message* message) { return rested.session->save(kPath, message); }, goes_on);
    CHECK(rested.session->save(kPath, &unused).ok());
    each_allocation(
        "restore", [&](Message* message) { return runner.restore(kPath, message).status(); },
        goes_on);
    auto restored = runner.restore(kPath, &unused);
    CHECK(restored.ok() && *(*restored)->tokens(&unused) == rested.base);
  }
  runner.scheduler().tree().clear();
  CHECK(runner.scheduler().pool().pages() == 0);
  std::remove(kPath);
}

void test_embeddings_and_scores() {
  Setup setup({}, 12, 0);
  const std::vector<Tokens> texts = {prompt_of(1, 100), prompt_of(2, 3), prompt_of(3, 140)};
  const Span<const Tokens> all(texts.data(), texts.size());
  each_allocation(
      "embed", [&](Message* message) { return embed(setup.runner, all, {}, message).status(); },
      Usable(&setup));
  each_allocation(
      "score",
      [&](Message* message) {
        return score(setup.runner.scheduler(), view(texts[0]), 3, nullptr, message).status();
      },
      Usable(&setup));
  setup.runner.scheduler().tree().clear();
  CHECK(setup.runner.scheduler().pool().pages() == 0);
}

// The memory of the cache ends, although its limit is not reached.
class NoPages final : public PageMemory {
 public:
  void* allocate(size_t bytes) override {
    return left > 0 ? --left, heap_pages().allocate(bytes) : nullptr;
  }
  void free(void* memory, size_t bytes) override { heap_pages().free(memory, bytes); }
  size_t left = 0;
};

void test_pages_without_memory() {
  const FakeOptions fake;
  NoPages pages;
  Runner runner;
  RunnerOptions options;
  options.memory = &pages;
  Message message;
  CHECK(runner.open(std::make_unique<FakeModel>(fake), nullptr, options, &message).ok());
  const Tokens prompt = prompt_of(1, 100);
  for (const size_t left : {0, 1, 2}) {  // pages; the prompt has two
    pages.left = left;
    auto generation = runner.generate(view(prompt), greedy(60), &message);
    CHECK(generation.ok() && read_all(**generation).size() == (left < 2 ? 0u : 29u));
    message.clear();
    CHECK((*generation)->status(&message).code() == Code::MemoryAllocationFailed);
    CHECK(!message.empty());
    generation->reset();
    runner.scheduler().tree().clear();
    CHECK(runner.scheduler().pool().pages() == 0);
  }
  pages.left = 100;
  CHECK(generate(runner, prompt, greedy(60)).size() == 60);
}

// A program with a tokenizer and a chat template: all that is said of it above, by its own model.
void test_program(const char* path) {
  CpuBackend cpu;
  BackendTable table;
  CHECK(table.add(CpuBackend::kId, &cpu).ok());
  LoadOptions options;
  options.module.backends = &table;
  options.module.threads = 1;
  Tokens wanted;
  const auto use = [&](Runner& runner, Message* message) -> Status {
    Tokens prompt;
    RL_TRY(runner.encode("the lamp was", true, true, &prompt, message));
    std::unique_ptr<Session> session = runner.new_session();
    if (session == nullptr) return message->fail(Code::MemoryAllocationFailed, "no session");
    RL_TRY(read_to_end(session->generate(view(prompt), greedy(8), message), message));
    const StringView text("the light was low");
    const Result<std::vector<float>> vector =
        embed(runner, Span<const StringView>(&text, 1), {}, message);
    return vector.status();
  };
  const char messages[] = R"({"messages": [{"role": "user", "content": "lamp"}],
                              "add_generation_prompt": true})";
  each_allocation(
      "load",
      [&](Message* message) {
        Runner runner;
        return load(path, options, &runner, message);
      },
      [](Status) {});
  Runner runner;
  Message message;
  CHECK(load(path, options, &runner, &message).ok());
  each_allocation(
      "use", [&](Message* why) { return use(runner, why); },
      [&](Status) {
        Message why;
        CHECK(use(runner, &why).ok());
      });
  each_allocation(
      "messages",
      [&](Message* why) {
        const Result<JsonValue> json = parse_json({messages, sizeof(messages) - 1}, why);
        if (!json.ok()) return json.status();
        Tokens tokens;
        const Status status = runner.encode_chat(json.value(), &tokens, why);
        if (status.ok() && wanted.empty()) std::swap(wanted, tokens);
        CHECK(!status.ok() || tokens.empty() || tokens == wanted);
        return status;
      },
      [](Status) {});
}

}  // namespace

int main(int argc, char** argv) {
  test_texts();
  test_another_text();
  test_grammars();
  test_texts_of_sessions();
  test_sessions();
  test_embeddings_and_scores();
  test_pages_without_memory();
  for (int i = 1; i < argc; ++i) test_program(argv[i]);
  return check_result();
}
