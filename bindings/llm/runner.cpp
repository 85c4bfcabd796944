// `_core.LlmRunner`, `LlmSession` and `LlmGeneration`: the runner of language models. All calls let
// go of the GIL: each may wait for a step that another thread runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "arrays/arrays.h"
#include "backends/backends.h"
#include "bindings.h"
#include "failure.h"
#include "gil.h"
#include "kernels/python_kernel.h"
#include "llm/adapter.h"
#include "llm/grammar.h"
#include "llm/runner.h"
#include "rushlight/llm/evaluate/embed.h"
#include "rushlight/llm/evaluate/score.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/memory/guard.h"

namespace rushlight::python {

namespace {

using llm::GenerateOptions;

struct KeptVocabulary {
  std::shared_ptr<RunnerHandle> runner;
  std::shared_ptr<const llm::Vocabulary> vocabulary;
};

struct SessionHandle {
  std::shared_ptr<RunnerHandle> runner;
  std::unique_ptr<llm::Session> session;
  ~SessionHandle() {
    const GilRelease release;
    session.reset();
  }
};

struct GenerationHandle {
  std::shared_ptr<RunnerHandle> runner;
  std::shared_ptr<SessionHandle> session;
  std::unique_ptr<llm::Generation> generation;
  bool is_read = false;  // a call reads it, which may wait without the GIL
  ~GenerationHandle() {
    const GilRelease release;
    generation.reset();
  }
};

Span<const int32_t> view(const std::vector<int32_t>& tokens) {
  return {tokens.data(), tokens.size()};
}

nb::object text(StringView bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

// Calls `body(&message)` without the GIL; throws a Failure for a status that is not ok.
template <class Body>
auto call(const Body& body) {
  Message message;
  auto result = [&] {
    const GilRelease release;
    return body(&message);
  }();
  if constexpr (std::is_same_v<decltype(result), Status>) {
    if (!result.ok()) fail(result.code(), message);
  } else {
    if (!result.ok()) fail(result.status().code(), message);
    return std::move(result.value());
  }
}

std::shared_ptr<RunnerHandle> open(nb::object path, nb::object data, size_t threads, bool map,
                                   bool guard, const std::string& cache, size_t cache_limit,
                                   size_t texts, size_t prefill_rows, nb::object tokenizer,
                                   const std::string& chat_template,
                                   const nb::bytes& failure_report, nb::tuple trace,
                                   const std::vector<nb::bytes>& kernels) {
  auto handle = std::make_shared<RunnerHandle>();
  llm::LoadOptions options;
  options.module.backends = &backend_table();
  options.module.kernels = &kernel_table();
  std::vector<const char*> libraries;
  for (const nb::bytes& library : kernels) libraries.push_back(library.c_str());
  options.kernel_libraries = {libraries.data(), libraries.size()};
  options.module.any_scalar_inputs = true;
  options.module.threads = threads;
  options.module.map = map;
  options.module.guard = guard;
  if (failure_report.size() > 0) {
    handle->failures = std::make_unique<FailureFile>(failure_report.c_str());
    options.module.failure = handle->failures->hook();
  }
  const TraceOptions traced = trace_options(trace);
  if (traced.bytes > 0) {
    handle->trace = std::make_unique<SessionTrace>(traced);
    options.module.tracer = handle->trace->tracer();
  }
  options.runner.scheduler.cache_limit = cache_limit;
  options.runner.scheduler.texts = texts;
  options.runner.scheduler.prefill_rows = prefill_rows;
  const llm::CacheType types[] = {llm::CacheType::Automatic, llm::CacheType::Float32,
                                  llm::CacheType::Float16, llm::CacheType::Int8};
  for (const llm::CacheType type : types) {
    if (cache == llm::cache_type_name(type)) options.cache = type;
  }
  if (!tokenizer.is_none()) {
    handle->tokenizer = tokenizer;
    options.tokenizer = {reinterpret_cast<const uint8_t*>(PyBytes_AsString(tokenizer.ptr())),
                         static_cast<size_t>(PyBytes_Size(tokenizer.ptr()))};
  }
  handle->chat_template = chat_template;
  options.chat_template = {handle->chat_template.data(), handle->chat_template.size()};
  const bool is_file = !path.is_none();
  handle->program = data;
  const char* bytes = PyBytes_AsString(is_file ? path.ptr() : data.ptr());
  const size_t size = is_file ? 0 : static_cast<size_t>(PyBytes_Size(data.ptr()));
  call([&](Message* message) {
    if (is_file) return llm::load(bytes, options, &handle->runner, message);
    const Span<const uint8_t> program(reinterpret_cast<const uint8_t*>(bytes), size);
    return llm::load_memory(program, options, &handle->runner, message);
  });
  return handle;
}

std::shared_ptr<GenerationHandle> generate(const std::shared_ptr<RunnerHandle>& self,
                                           const std::vector<int32_t>& prompt,
                                           const GenerateOptions& options) {
  auto handle = std::make_shared<GenerationHandle>();
  handle->runner = self;
  handle->generation =
      call([&](Message* message) { return self->runner.generate(view(prompt), options, message); });
  return handle;
}

std::shared_ptr<SessionHandle> wrap(const std::shared_ptr<RunnerHandle>& runner,
                                    std::unique_ptr<llm::Session> session) {
  auto handle = std::make_shared<SessionHandle>();
  handle->runner = runner;
  handle->session = std::move(session);
  return handle;
}

nb::dict facts(RunnerHandle& self) {
  llm::Runner& runner = self.runner;
  const llm::ModelFacts& facts = runner.facts();
  nb::dict told;
  told["vocabulary"] = facts.vocabulary;
  told["has_chat"] = runner.chat().is_open();
  told["has_text"] = runner.codec() != nullptr;
  told["reply_format"] = runner.chat().is_open() ? runner.chat().reply_format().name : "";
  told["reasons"] = runner.chat().is_open() && runner.chat().reasons();
  told["context"] = facts.context;
  told["batch"] = facts.batch;
  told["wanted"] = facts.wanted;
  told["page_bytes"] = facts.page_bytes;
  told["cache_limit"] = runner.scheduler().pool().limit();
  told["cache_type"] = facts.is_encoder ? "none" : dtype_name(facts.cache.dtype);
  told["hidden"] = facts.hidden;
  return told;
}

size_t cache_bytes(RunnerHandle& self) {
  const GilRelease release;
  const llm::Scheduler::Turn turn(self.runner.scheduler());
  return self.runner.scheduler().pool().bytes();
}

std::vector<int32_t> encode(RunnerHandle& self, const nb::bytes& text, bool add_special,
                            bool parse_special) {
  std::vector<int32_t> tokens;
  call([&](Message* message) {
    return self.runner.encode({text.c_str(), text.size()}, add_special, parse_special, &tokens,
                              message);
  });
  return tokens;
}

// `variables` is JSON.
std::vector<int32_t> encode_chat(RunnerHandle& self, const nb::bytes& variables) {
  std::vector<int32_t> tokens;
  call([&](Message* message) {
    const Result<llm::JsonValue> parsed =
        llm::parse_json({variables.c_str(), variables.size()}, message);
    if (!parsed.ok()) return parsed.status();
    return self.runner.encode_chat(parsed.value(), &tokens, message);
  });
  return tokens;
}

std::vector<int32_t> tokens_with(RunnerHandle& self, const nb::bytes& text) {
  const llm::TextCodec* codec = self.runner.codec();
  if (codec == nullptr) fail(Code::NotSupported, "the program has no tokenizer");
  return llm::tokens_with(*codec, {text.c_str(), text.size()});
}

nb::object decode(RunnerHandle& self, const std::vector<int32_t>& tokens, bool skip_special) {
  const llm::TextCodec* codec = self.runner.codec();
  if (codec == nullptr) fail(Code::NotSupported, "the program has no tokenizer");
  const std::string decoded = codec->decode(view(tokens), skip_special);
  return text({decoded.data(), decoded.size()});
}

nb::bytes piece(RunnerHandle& self, int32_t token) {
  const llm::TextCodec* codec = self.runner.codec();
  if (codec == nullptr) fail(Code::NotSupported, "the program has no tokenizer");
  const StringView bytes = codec->piece(token);
  return nb::bytes(bytes.data(), bytes.size());
}

// An array [texts, hidden].
nb::object array_of(RunnerHandle& self, const std::vector<float>& numbers) {
  const auto hidden = static_cast<int32_t>(self.runner.facts().hidden);
  const auto texts = static_cast<int32_t>(numbers.size() / static_cast<size_t>(hidden));
  return new_numpy(HostTensor(DType::Float32, {texts, hidden}, numbers.data()));
}

nb::object embed_texts(RunnerHandle& self, const std::vector<nb::bytes>& texts, bool normalize,
                       bool truncate, const AdapterHandle* adapter) {
  std::vector<StringView> views;
  for (const nb::bytes& text : texts) views.push_back({text.c_str(), text.size()});
  return array_of(self, call([&](Message* message) {
                    const Span<const StringView> all(views.data(), views.size());
                    const llm::EmbedOptions options = {normalize, truncate, adapter_of(adapter)};
                    return llm::embed(self.runner, all, options, message);
                  }));
}

nb::object embed_tokens(RunnerHandle& self, const std::vector<std::vector<int32_t>>& texts,
                        bool normalize, bool truncate, const AdapterHandle* adapter) {
  return array_of(self, call([&](Message* message) {
                    const Span<const std::vector<int32_t>> all(texts.data(), texts.size());
                    const llm::EmbedOptions options = {normalize, truncate, adapter_of(adapter)};
                    return llm::embed(self.runner, all, options, message);
                  }));
}

VocabularyHandle vocabulary(const std::shared_ptr<RunnerHandle>& self) {
  const std::shared_ptr<const llm::Vocabulary> made =
      call([&](Message* message) { return self->runner.vocabulary(message); });
  // It encodes by the runner's tokenizer, so it keeps the runner.
  const auto kept = std::make_shared<KeptVocabulary>(KeptVocabulary{self, made});
  return {{kept, made.get()}};
}

AdapterHandle load_adapter(RunnerHandle& self, const nb::bytes& path) {
  return {call([&](Message* message) { return self.runner.load_adapter(path.c_str(), message); })};
}

// --- generations --------------------------------------------------------------------------------

nb::object token_of(const llm::Drawn& drawn) {
  nb::list top;
  for (size_t i = 0; i < drawn.n_top; ++i) {
    top.append(nb::make_tuple(drawn.top[i].token, drawn.top[i].logprob));
  }
  return nb::make_tuple(drawn.token, drawn.logprob, top);
}

nb::list tokens_of(const std::vector<llm::Drawn>& all) {
  nb::list tokens;
  for (const llm::Drawn& drawn : all) tokens.append(token_of(drawn));
  return tokens;
}

// Marks a generation as being read.
class Reading {
 public:
  explicit Reading(bool* flag) : flag_(flag) { *flag_ = true; }
  ~Reading() { *flag_ = false; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  bool* flag_;
};

// Lets Python handle signals, such as Ctrl-C; false if that raised an exception.
bool handle_signals() {
  const GilAcquire acquire;
  return PyErr_CheckSignals() == 0;
}

// (choice, [(token, logprob, top)], text, finish), or None at the end.
nb::object next(GenerationHandle& self) {
  llm::Piece piece;
  bool has_more = false;
  if (self.is_read) {
    Message message;
    const Status status = message.fail(
        Code::InvalidState, "another thread waits for this text: read a stream on one thread");
    fail(status.code(), message);
  }
  // Until the end: Python code may run, or another thread, while objects are made of the views.
  const Reading reading(&self.is_read);
  {
    const GilRelease release;
    has_more = self.generation->next(&piece, handle_signals);
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  if (!has_more) {
    Message message;
    const Status status = self.generation->status(&message);
    if (!status.ok()) fail(status.code(), message);
    return nb::none();
  }
  nb::list tokens;
  for (const llm::Drawn& drawn : piece.tokens) tokens.append(token_of(drawn));
  return nb::make_tuple(piece.choice, tokens, text(piece.text), llm::finish_name(piece.finish));
}

nb::dict statistics(GenerationHandle& self) {
  const llm::Statistics figures = [&] {
    const GilRelease release;
    return self.generation->statistics();
  }();
  nb::dict told;
  told["prompt_tokens"] = figures.prompt_tokens;
  told["reused_tokens"] = figures.reused_tokens;
  told["output_tokens"] = figures.output_tokens;
  told["guessed_tokens"] = figures.guessed_tokens;
  told["accepted_tokens"] = figures.accepted_tokens;
  told["recomputed_tokens"] = figures.recomputed_tokens;
  told["steps"] = figures.steps;
  told["submitted_ns"] = figures.submitted_ns;
  told["started_ns"] = figures.started_ns;
  told["first_token_ns"] = figures.first_token_ns;
  told["finished_ns"] = figures.finished_ns;
  return told;
}

// --- sessions -----------------------------------------------------------------------------------

using Generate = Result<std::unique_ptr<llm::Generation>> (llm::Session::*)(Span<const int32_t>,
                                                                            const GenerateOptions&,
                                                                            Message*);

template <Generate kGenerate>
std::shared_ptr<GenerationHandle> generate_in(const std::shared_ptr<SessionHandle>& self,
                                              const std::vector<int32_t>& tokens,
                                              const GenerateOptions& options) {
  auto handle = std::make_shared<GenerationHandle>();
  handle->runner = self->runner;
  handle->session = self;
  handle->generation = call([&](Message* message) {
    return (self->session.get()->*kGenerate)(view(tokens), options, message);
  });
  return handle;
}

void init_session(nb::module_& m) {
  nb::class_<SessionHandle>(m, "LlmSession")
      .def("generate", generate_in<&llm::Session::generate>, nb::arg("prompt"), nb::arg("options"))
      .def("generate_after", generate_in<&llm::Session::generate_after>, nb::arg("text"),
           nb::arg("options"))
      .def(
          "set_tokens",
          [](SessionHandle& self, const std::vector<int32_t>& tokens) {
            call([&](Message* message) { return self.session->set_tokens(view(tokens), message); });
          },
          nb::arg("tokens"))
      .def(
          "rewind",
          [](SessionHandle& self, size_t count) {
            call([&](Message* message) { return self.session->rewind(count, message); });
          },
          nb::arg("count"))
      .def("fork",
           [](const std::shared_ptr<SessionHandle>& self) {
             return wrap(self->runner,
                         call([&](Message* message) { return self->session->fork(message); }));
           })
      .def(
          "save",
          [](SessionHandle& self, const nb::bytes& path) {
            call([&](Message* message) { return self.session->save(path.c_str(), message); });
          },
          nb::arg("path"))
      .def("tokens",
           [](SessionHandle& self) {
             return call([&](Message* message) { return self.session->tokens(message); });
           })
      .def("cached",
           [](SessionHandle& self) {
             const GilRelease release;
             return self.session->cached();
           })
      .def("adapter",
           [](SessionHandle& self) -> std::optional<AdapterHandle> {
             const GilRelease release;
             std::shared_ptr<const llm::Adapter> adapter = self.session->adapter();
             if (adapter == nullptr) return std::nullopt;
             return AdapterHandle{std::move(adapter)};
           })
      .def(
          "set_adapter",
          [](SessionHandle& self, const AdapterHandle* adapter) {
            call([&](Message* message) {
              return self.session->set_adapter(adapter_of(adapter), message);
            });
          },
          nb::arg("adapter").none());
}

void init_adapter(nb::module_& m) {
  nb::class_<AdapterHandle>(m, "LlmAdapter")
      .def_prop_ro("rank", [](const AdapterHandle& self) { return self.adapter->rank(); })
      .def("__eq__",
           [](const AdapterHandle& self, nb::object other) {
             return nb::isinstance<AdapterHandle>(other) &&
                    nb::cast<AdapterHandle&>(other).adapter == self.adapter;
           })
      .def("__hash__", [](const AdapterHandle& self) { return self.adapter->id(); });
}

void init_generation(nb::module_& m) {
  nb::class_<GenerationHandle>(m, "LlmGeneration")
      .def("next", next)
      .def("cancel", [](GenerationHandle& self) { self.generation->cancel(); })
      .def("statistics", statistics)
      .def(
          "stopped_by",
          [](GenerationHandle& self, size_t choice) {
            return text(self.generation->stopped_by(choice));
          },
          nb::arg("choice"));
}

}  // namespace

void init_llm_runner(nb::module_& m) {
  nb::class_<RunnerHandle> runner(m, "LlmRunner");
  init_runner_trace(runner);
  runner
      .def_static("open", open, nb::arg("path").none(), nb::arg("data").none(), nb::arg("threads"),
                  nb::arg("map"), nb::arg("guard"), nb::arg("cache"), nb::arg("cache_limit"),
                  nb::arg("texts"), nb::arg("prefill_rows"), nb::arg("tokenizer").none(),
                  nb::arg("chat_template"), nb::arg("failure_report"), nb::arg("trace"),
                  nb::arg("kernels"))
      .def("generate", generate, nb::arg("prompt"), nb::arg("options"))
      .def("session",
           [](const std::shared_ptr<RunnerHandle>& self) {
             using Made = Result<std::unique_ptr<llm::Session>>;
             return wrap(self, call([&](Message* message) -> Made {
                           std::unique_ptr<llm::Session> session = self->runner.new_session();
                           if (session != nullptr) return session;
                           return llm::out_of_memory("begin a session", message);
                         }));
           })
      .def("load_adapter", load_adapter, nb::arg("path"))
      .def("defaults", [](RunnerHandle& self) { return self.runner.defaults(); })
      .def("facts", facts)
      .def("vocabulary", vocabulary)
      .def(
          "score",
          [](RunnerHandle& self, const std::vector<int32_t>& tokens, int32_t alternatives,
             const AdapterHandle* adapter) {
            return tokens_of(call([&](Message* message) {
              return llm::score(self.runner.scheduler(), view(tokens), alternatives,
                                adapter_of(adapter), message);
            }));
          },
          nb::arg("tokens"), nb::arg("alternatives"), nb::arg("adapter").none())
      .def("embed_texts", embed_texts, nb::arg("texts"), nb::arg("normalize"), nb::arg("truncate"),
           nb::arg("adapter").none())
      .def("embed_tokens", embed_tokens, nb::arg("texts"), nb::arg("normalize"),
           nb::arg("truncate"), nb::arg("adapter").none())
      .def("encode", encode, nb::arg("text"), nb::arg("add_special"), nb::arg("parse_special"))
      .def("encode_chat", encode_chat, nb::arg("variables"))
      .def("piece", piece, nb::arg("token"))
      .def("tokens_with", tokens_with, nb::arg("text"))
      .def("decode", decode, nb::arg("tokens"), nb::arg("skip_special"))
      .def(
          "restore",
          [](const std::shared_ptr<RunnerHandle>& self, const nb::bytes& path,
             const AdapterHandle* adapter) {
            return wrap(self, call([&](Message* message) {
                          return self->runner.restore(path.c_str(), adapter_of(adapter), message);
                        }));
          },
          nb::arg("path"), nb::arg("adapter").none())
      .def("cache_bytes", cache_bytes);
  init_adapter(m);
  init_generation(m);
  init_session(m);
}

}  // namespace rushlight::python
