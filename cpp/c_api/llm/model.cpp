// Language models: opening them, their tokenizer and template, grammars, adapters, embeddings.
#include <algorithm>

#include "rushlight/c_api/kernels.h"
#include "rushlight/c_api/llm/llm_object.h"
#include "rushlight/llm/evaluate/embed.h"
#include "rushlight/llm/json/parse.h"

namespace rushlight::c_api {
namespace {

// Opens a model by `open(const llm::LoadOptions&, llm::Runner*, Message*)`.
template <class Open>
Status open_model(const rl_llm_options* asked, const Open& open, rl_llm** handle,
                  Message* message) {
  RL_TRY(check_given(handle, "llm", message));
  rl_llm_options options = {};
  RL_TRY(read_struct(asked, &options, "rl_llm_options", message));
  if (options.cache > RL_CACHE_INT8) {
    return message->fail(Code::InvalidArgument, "rl_llm_options: cache is %u, and at most %u",
                         static_cast<unsigned>(options.cache),
                         static_cast<unsigned>(RL_CACHE_INT8));
  }
  RL_TRY(check_kernels(options, message));
  auto object = std::make_unique<LlmObject>();
  object->model = std::make_shared<Model>();
  Model& model = *object->model;
  if (options.chat_template != nullptr) model.chat_template = options.chat_template;
  RL_TRY(model.backends.add(options, message));
  llm::LoadOptions wanted;
  wanted.module.backends = &model.backends.table;
  wanted.module.threads = options.threads;
  wanted.module.memory_limit = options.memory_limit;
  wanted.module.data_path = options.data_path;
  wanted.module.map = options.reads_file == 0;
  wanted.module.guard = options.guards_file != 0;
  wanted.module.any_scalar_inputs = true;
  wanted.kernels = {options.kernels, options.n_kernels};
  wanted.kernel_libraries = {options.kernel_libraries, options.n_kernel_libraries};
  wanted.cache = static_cast<llm::CacheType>(options.cache);
  wanted.runner.scheduler.texts = options.max_texts;
  wanted.runner.scheduler.cache_limit = static_cast<size_t>(options.cache_limit);
  wanted.runner.scheduler.prefill_rows = static_cast<size_t>(options.prefill_rows);
  wanted.chat_template = {model.chat_template.data(), model.chat_template.size()};
  RL_TRY(open(wanted, &model.runner, message));
  return hand_over(std::move(object), nullptr, handle, message);
}

rl_llm_info describe(llm::Runner& runner) {
  const llm::ModelFacts& facts = runner.facts();
  rl_llm_info info = {};
  info.cache_dtype = facts.is_encoder ? -1 : static_cast<int32_t>(facts.cache.dtype);
  info.vocabulary = facts.vocabulary;
  info.context = facts.context;
  info.hidden = facts.hidden;
  info.page_bytes = facts.page_bytes;
  info.has_tokenizer = runner.codec() != nullptr;
  info.has_chat_template = runner.chat().is_open();
  const llm::Scheduler::Turn turn(runner.scheduler());
  info.cache_bytes = runner.scheduler().pool().bytes();
  info.cache_limit = runner.scheduler().pool().limit();
  return info;
}

// Calls `body(const std::shared_ptr<Model>&, Message*)`.
template <class Body>
rl_status with_model(rl_llm* llm, rl_error* error, const Body& body) {
  return enter<LlmObject>(llm, Use::Shared, error, [&](LlmObject& object, Failing& failing) {
    return body(object.model, &failing.message);
  });
}

using MadeGrammar = Result<std::shared_ptr<const llm::Grammar>>;

// Makes a grammar by `make(vocabulary, Message*)`.
template <class Make>
rl_status make_grammar(rl_llm* llm, const Make& make, rl_grammar** handle, rl_error* error) {
  return with_model(llm, error,
                    [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
                      RL_TRY(check_given(handle, "grammar", message));
                      auto vocabulary = model->runner.vocabulary(message);
                      if (!vocabulary.ok()) return vocabulary.status();
                      MadeGrammar made = make(vocabulary.value(), message);
                      if (!made.ok()) return made.status();
                      auto object = std::make_unique<GrammarObject>();
                      object->model = model;
                      object->grammar = std::move(made.value());
                      return hand_over(std::move(object), nullptr, handle, message);
                    });
}

Status check_codec(const llm::Runner& runner, Message* message) {
  if (runner.codec() != nullptr) return {};
  return message->fail(Code::NotSupported, "the program has no tokenizer");
}

}  // namespace

Result<std::shared_ptr<const llm::Adapter>> adapter_of(const rl_adapter* handle, Message* message) {
  if (handle == nullptr) return std::shared_ptr<const llm::Adapter>();
  const Lease<AdapterObject> lease(handle, Use::Shared, message);
  RL_TRY(lease.status());
  return (*lease).adapter;
}

}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_llm_open(const char* path, const rl_llm_options* options, rl_llm** llm,
                      rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    RL_TRY(check_given(path, "path", &failing.message));
    const auto open = [&](const llm::LoadOptions& wanted, llm::Runner* runner, Message* message) {
      return llm::load(path, wanted, runner, message);
    };
    return open_model(options, open, llm, &failing.message);
  });
}

rl_status rl_llm_open_memory(const void* data, size_t bytes, const rl_llm_options* options,
                             rl_llm** llm, rl_error* error) {
  return enter(error, [&](Failing& failing) -> Status {
    RL_TRY(check_given(data, "data", &failing.message));
    const auto open = [&](const llm::LoadOptions& wanted, llm::Runner* runner, Message* message) {
      return llm::load_memory({static_cast<const uint8_t*>(data), bytes}, wanted, runner, message);
    };
    return open_model(options, open, llm, &failing.message);
  });
}

rl_status rl_llm_close(rl_llm* llm, rl_error* error) { return close<LlmObject>(llm, error); }

rl_status rl_llm_describe(rl_llm* llm, rl_llm_info* info, rl_error* error) {
  return with_model(llm, error, [&](const std::shared_ptr<Model>& model, Message* message) {
    return write_struct(describe(model->runner), info, "rl_llm_info", message);
  });
}

rl_status rl_llm_encode(rl_llm* llm, rl_text_v1 text, uint32_t flags, int32_t* tokens,
                        size_t capacity, size_t* count, rl_error* error) {
  return with_model(
      llm, error, [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
        std::vector<int32_t> all;
        RL_TRY(model->runner.encode(view(text), (flags & RL_ADD_SPECIAL) != 0,
                                    (flags & RL_PARSE_SPECIAL) != 0, &all, message));
        return give_items<int32_t>({all.data(), all.size()}, tokens, capacity, count, message);
      });
}

rl_status rl_llm_decode(rl_llm* llm, const int32_t* tokens, size_t n_tokens, uint32_t flags,
                        char* text, size_t capacity, size_t* count, rl_error* error) {
  return with_model(
      llm, error, [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
        RL_TRY(check_codec(model->runner, message));
        const auto items = items_of(tokens, n_tokens, "tokens", message);
        RL_TRY(items.status());
        const std::string decoded =
            model->runner.codec()->decode(items.value(), (flags & RL_SKIP_SPECIAL) != 0);
        return give_items<char>({decoded.data(), decoded.size()}, text, capacity, count, message);
      });
}

rl_status rl_llm_encode_chat(rl_llm* llm, rl_text_v1 json, int32_t* tokens, size_t capacity,
                             size_t* count, rl_error* error) {
  return with_model(
      llm, error, [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
        const Result<llm::JsonValue> variables = llm::parse_json(view(json), message);
        RL_TRY(variables.status());
        std::vector<int32_t> all;
        RL_TRY(model->runner.encode_chat(variables.value(), &all, message));
        return give_items<int32_t>({all.data(), all.size()}, tokens, capacity, count, message);
      });
}

rl_status rl_grammar_from_regex(rl_llm* llm, rl_text_v1 pattern, rl_grammar** grammar,
                                rl_error* error) {
  const auto make = [&](const std::shared_ptr<const llm::Vocabulary>& vocabulary,
                        Message* message) {
    return llm::Grammar::from_regex(view(pattern), vocabulary, {}, message);
  };
  return make_grammar(llm, make, grammar, error);
}

rl_status rl_grammar_from_json_schema(rl_llm* llm, rl_text_v1 schema, rl_grammar** grammar,
                                      rl_error* error) {
  const auto make = [&](const std::shared_ptr<const llm::Vocabulary>& vocabulary,
                        Message* message) -> MadeGrammar {
    const Result<llm::JsonValue> json = llm::parse_json(view(schema), message);
    RL_TRY(json.status());
    return llm::Grammar::from_json_schema(json.value(), vocabulary, {}, message);
  };
  return make_grammar(llm, make, grammar, error);
}

rl_status rl_grammar_close(rl_grammar* grammar, rl_error* error) {
  return close<GrammarObject>(grammar, error);
}

rl_status rl_adapter_open(rl_llm* llm, const char* path, rl_adapter** adapter, rl_error* error) {
  return with_model(llm, error,
                    [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
                      RL_TRY(check_given(path, "path", message));
                      RL_TRY(check_given(adapter, "adapter", message));
                      auto loaded = model->runner.load_adapter(path, message);
                      RL_TRY(loaded.status());
                      auto object = std::make_unique<AdapterObject>();
                      object->model = model;
                      object->adapter = std::move(loaded.value());
                      return hand_over(std::move(object), nullptr, adapter, message);
                    });
}

rl_status rl_adapter_close(rl_adapter* adapter, rl_error* error) {
  return close<AdapterObject>(adapter, error);
}

rl_status rl_llm_generate(rl_llm* llm, const int32_t* prompt, size_t n_prompt,
                          const rl_generate_options* options, rl_piece_fn write, void* userdata,
                          rl_statistics* statistics, rl_error* error) {
  return with_model(llm, error,
                    [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
                      const auto items = items_of(prompt, n_prompt, "prompt", message);
                      RL_TRY(items.status());
                      return generate(*model, nullptr, nullptr, items.value(),
                                      {options, write, userdata, statistics}, message);
                    });
}

rl_status rl_llm_embed(rl_llm* llm, const rl_text_v1* texts, uint32_t n_texts, uint32_t normalizes,
                       uint32_t truncates, float* vectors, size_t capacity, rl_error* error) {
  return with_model(
      llm, error, [&](const std::shared_ptr<Model>& model, Message* message) -> Status {
        const auto items = items_of(texts, n_texts, "texts", message);
        RL_TRY(items.status());
        RL_TRY(check_given(vectors, "vectors", message));
        const size_t needed = model->runner.facts().hidden * items.value().size();
        if (needed > capacity) return fail_room(capacity, needed, message);
        std::vector<StringView> views;
        for (const rl_text_v1 text : items.value()) views.push_back(view(text));
        const llm::EmbedOptions wanted = {normalizes != 0, truncates != 0, nullptr};
        const auto numbers = llm::embed(
            model->runner, Span<const StringView>(views.data(), views.size()), wanted, message);
        RL_TRY(numbers.status());
        std::copy(numbers.value().begin(), numbers.value().end(), vectors);
        return {};
      });
}
