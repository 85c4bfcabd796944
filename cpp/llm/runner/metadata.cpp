#include "rushlight/llm/runner/metadata.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/memory/guard.h"

namespace rushlight::llm {
namespace {

constexpr int64_t kVersion = 1;
constexpr int64_t kMost = (int64_t{1} << 31) - 1;  // of any other count
constexpr int64_t kMostRank = 256;                 // of an adapter

const char* pooling_name(Pooling pooling) {
  const char* names[] = {"last", "mean", "cls"};
  return names[static_cast<size_t>(pooling)];
}

const JsonValue& member(const JsonValue& object, const char* name) {
  static const JsonValue none;
  const JsonValue* value = object.find(name);
  return value != nullptr ? *value : none;
}

Status fail(Message* message, const char* name, const char* wanted) {
  return message->fail(Code::InvalidProgram,
                       "the program's description of its language model has no %s '%s': it is "
                       "damaged; export again",
                       wanted, name);
}

template <class Count>
Status read_count(const JsonValue& object, const char* name, int64_t most, Count* count,
                  Message* message) {
  const int64_t value = member(object, name).integer();
  if (value < 1) return fail(message, name, "positive integer");
  if (value > most) {
    return message->fail(Code::InvalidProgram,
                         "the program's description of its language model has the %s %lld; this "
                         "runtime takes at most %lld",
                         name, static_cast<long long>(value), static_cast<long long>(most));
  }
  *count = static_cast<Count>(value);
  return {};
}

// The sizes of the cache; an encoder has no layers with one.
Status read_cache(const JsonValue& root, ModelFacts* facts, Message* message) {
  const JsonValue& layers = member(root, "layers");
  facts->is_encoder = layers.is_integer() && layers.integer() == 0;
  if (facts->is_encoder) return {};
  RL_TRY(read_count(root, "layers", kMost, &facts->cache.layers, message));
  RL_TRY(read_count(root, "key_heads", kMost, &facts->cache.heads, message));
  RL_TRY(read_count(root, "width", kMost, &facts->cache.width, message));
  return read_count(root, "value_width", kMost, &facts->cache.value_width, message);
}

Status read_embedding(const JsonValue& root, ModelFacts* facts, Message* message) {
  const JsonValue& hidden = member(root, "hidden");
  const bool has_none = hidden.is_null() || (hidden.is_integer() && hidden.integer() == 0);
  if (has_none && !facts->is_encoder) return {};
  RL_TRY(read_count(root, "hidden", kMostTokens, &facts->hidden, message));
  // A text of an encoder is one call.
  if (facts->is_encoder && facts->batch < facts->context) {
    return fail(message, "batch", "large enough");
  }
  const std::string& pooling = member(root, "pooling").string();
  for (const Pooling known : {Pooling::Last, Pooling::Mean, Pooling::First}) {
    if (pooling != pooling_name(known)) continue;
    facts->pooling = known;
    return {};
  }
  return fail(message, "pooling", "known kind of");
}

// The adapters that the program takes; it may take none.
Status read_adapters(const JsonValue& root, AdapterFacts* adapters, Message* message) {
  const JsonValue& from = member(root, "adapters");
  if (from.is_null()) return {};
  RL_TRY(read_count(from, "rank", kMostRank, &adapters->rank, message));
  adapters->base = member(from, "base").string();
  for (const JsonValue& one : member(from, "sites").items()) {
    AdapterSite site;
    site.name = member(one, "name").string();
    RL_TRY(read_count(one, "inputs", kMostTokens, &site.in, message));
    RL_TRY(read_count(one, "outputs", kMostTokens, &site.out, message));
    adapters->sites.push_back(std::move(site));
  }
  if (adapters->sites.empty()) return fail(message, "sites", "layers in");
  return {};
}

bool is_token(const JsonValue& value, size_t vocabulary) {
  return value.is_integer() && value.integer() >= 0 &&
         value.integer() < static_cast<int64_t>(vocabulary);
}

// Adds a token, or those of a list.
Status read_tokens(const JsonValue& value, const char* name, size_t vocabulary,
                   std::vector<int32_t>* tokens, Message* message) {
  const std::vector<JsonValue> one = {value};
  for (const JsonValue& item : value.is_array() ? value.items() : one) {
    if (item.is_null()) continue;
    if (!is_token(item, vocabulary)) return fail(message, name, "tokens of the vocabulary in");
    const auto token = static_cast<int32_t>(item.integer());
    if (std::find(tokens->begin(), tokens->end(), token) == tokens->end()) tokens->push_back(token);
  }
  return {};
}

void read_number(const JsonValue& object, const char* name, float* number) {
  const JsonValue& value = member(object, name);
  if (value.is_number()) *number = static_cast<float>(value.number());
}

// Fields of a generation_config.json that have a meaning here; without `do_sample` the most
// probable token is taken, as `transformers` does.
GenerateOptions read_defaults(const JsonValue& config) {
  GenerateOptions options;
  SamplingOptions& sampling = options.sampling;
  read_number(config, "temperature", &sampling.temperature);
  read_number(config, "top_p", &sampling.top_p);
  read_number(config, "min_p", &sampling.min_p);
  read_number(config, "typical_p", &sampling.typical_p);
  read_number(config, "repetition_penalty", &sampling.repetition_penalty);
  const int64_t top_k = member(config, "top_k").integer();
  if (top_k > 0 && top_k <= kMost) sampling.top_k = static_cast<uint32_t>(top_k);
  const int64_t count = member(config, "max_new_tokens").integer();
  if (count > 0 && count <= kMost) options.max_tokens = static_cast<size_t>(count);
  if (!member(config, "do_sample").boolean()) sampling.temperature = 0.0f;
  return options;
}

}  // namespace

Result<Metadata> read_metadata(StringView json, Message* message) {
  const Result<JsonValue> parsed = parse_json(json, message);
  if (!parsed.ok()) {
    message->prepend("the program's description of its language model: ");
    return recoded(parsed.status(), Code::InvalidProgram);
  }
  const JsonValue& root = parsed.value();
  const int64_t version = member(root, "version").integer();
  if (version != kVersion) {
    return message->fail(Code::InvalidProgram,
                         "the program's description of its language model has version %lld; this "
                         "runtime reads version %lld: export again, or use another release",
                         static_cast<long long>(version), static_cast<long long>(kVersion));
  }
  Metadata metadata;
  ModelFacts& facts = metadata.facts;
  RL_TRY(read_count(root, "vocabulary", kMostTokens, &facts.vocabulary, message));
  RL_TRY(read_count(root, "context", kMostTokens, &facts.context, message));
  RL_TRY(read_count(root, "batch", kMostTokens, &facts.batch, message));
  RL_TRY(read_count(root, "wanted", kMostTokens, &facts.wanted, message));
  RL_TRY(read_cache(root, &facts, message));
  RL_TRY(read_embedding(root, &facts, message));
  RL_TRY(read_adapters(root, &facts.adapters, message));
  metadata.family = member(root, "family").string();
  metadata.tokens = member(root, "tokens");
  const JsonValue& bos = member(root, "bos");
  if (is_token(bos, facts.vocabulary)) metadata.bos = static_cast<int32_t>(bos.integer());
  const JsonValue& generation = member(root, "generation");
  RL_TRY(read_tokens(member(root, "eos"), "eos", facts.vocabulary, &metadata.ends, message));
  RL_TRY(read_tokens(member(generation, "eos_token_id"), "eos_token_id", facts.vocabulary,
                     &metadata.ends, message));
  metadata.defaults = read_defaults(generation);
  const Status checked = metadata.defaults.sampling.check(facts.vocabulary, message);
  if (!checked.ok()) {
    message->prepend("the defaults for sampling in the program: ");
    return Code::InvalidProgram;
  }
  return metadata;
}

}  // namespace rushlight::llm
