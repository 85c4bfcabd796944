#include "rushlight/llm/runner/module_model.h"

#include "rushlight/engine/types/kv_page.h"

namespace rushlight::llm {
namespace {

constexpr size_t kWanted = 3;

DType dtype_of(CacheType type) {
  if (type == CacheType::Int8) return DType::Int8;
  return type == CacheType::Float16 ? DType::Float16 : DType::Float32;
}

// Int8 unless another type is wanted: it moves the perplexity of trained models by less than 0.5 %
// (python -m benchmarks llm_quality), and takes a third of float32's memory.
Status choose_cache(CacheType wanted, ModelFacts* facts, Message* message) {
  if (wanted == CacheType::Automatic) wanted = CacheType::Int8;
  facts->cache.dtype = dtype_of(wanted);
  facts->page_bytes = engine::kv_page_bytes(facts->cache);
  if (facts->page_bytes > 0) return {};
  return message->fail(Code::NotSupported,
                       "there is no key-value cache for %u layers of %u heads with keys of %u and "
                       "values of %u elements: layers and heads can be up to 65536, elements %d",
                       facts->cache.layers, facts->cache.heads, facts->cache.width,
                       facts->cache.value_width, static_cast<int>(engine::kKvWidth));
}

}  // namespace

const char* cache_type_name(CacheType type) {
  const char* names[] = {"auto", "float32", "float16", "int8"};
  return names[static_cast<size_t>(type)];
}

Status refuse_encoder(const char* what, Message* message) {
  return message->fail(Code::NotSupported,
                       "the program is an encoder, which does not %s text: it has the method "
                       "'embed' alone",
                       what);
}

Status ModuleModel::open(CacheType cache, Message* message) {
  const Result<Span<const uint8_t>> json = module_->program().get(kMetadataKey);
  if (!json.ok()) {
    return message->fail(Code::NotSupported,
                         "the program is no language model: it has no '%s'. Make one with "
                         "rushlight.llm.export, or run this one with rushlight.load",
                         kMetadataKey);
  }
  const Span<const uint8_t> bytes = json.value();
  Result<Metadata> metadata =
      read_metadata({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, message);
  if (!metadata.ok()) return metadata.status();
  metadata_ = std::move(metadata.value());
  const ModelFacts& facts = metadata_.facts;
  step_ = {kStep, facts.vocabulary, facts.wanted};
  embed_ = {kEmbed, facts.hidden, facts.batch};
  if (facts.is_encoder) {
    if (cache == CacheType::Automatic) return load(&embed_, message);
    return message->fail(Code::NotSupported,
                         "the program is an encoder ('%s'), which has no keys and values to store "
                         "as %s: leave kv out",
                         metadata_.family.c_str(), cache_type_name(cache));
  }
  RL_TRY(choose_cache(cache, &metadata_.facts, message));
  cache_.layout = metadata_.facts.cache;
  // Before anybody makes room for what `embed` is said to give; it is loaded later.
  if (facts.hidden > 0) {
    const Result<MethodMeta> meta = module_->program().method_meta(kEmbed, message);
    if (!meta.ok()) return meta.status();
    RL_TRY(check_method(embed_, meta.value(), message));
  }
  return load(&step_, message);
}

Status ModuleModel::load(Rows* rows, Message* message) {
  const Result<Method*> method = module_->method(rows->name);
  if (!method.ok()) {
    *message = module_->message();
    return method.status();
  }
  rows->method = method.value();
  const Status status = check_method(*rows, rows->method->meta(), message);
  if (!status.ok()) rows->method = nullptr;
  return status;
}

// The method must take and give what the description says.
Status ModuleModel::check_method(const Rows& rows, const MethodMeta& meta, Message* message) const {
  const auto refuse = [&](const char* what) {
    return message->fail(Code::InvalidProgram,
                         "method '%s' of the program %s, which its description of a language model "
                         "does not say: it is damaged; export again",
                         rows.name, what);
  };
  if (meta.n_inputs() != 4 || meta.n_outputs() != 1) {
    return refuse("has other inputs and outputs");
  }
  const ModelFacts& facts = metadata_.facts;
  for (size_t i = 0; i < 4; ++i) {
    const ValueMeta input = meta.input(i);
    const size_t most = i == kWanted ? rows.wanted : facts.batch;
    const TensorMeta& tensor = input.tensor;
    if (input.tag != Tag::Tensor || tensor.dtype != DType::Int64 || tensor.rank != 1 ||
        static_cast<size_t>(tensor.sizes[0]) < most) {
      return refuse("has other inputs");
    }
  }
  const ValueMeta output = meta.output(0);
  const TensorMeta& result = output.tensor;
  if (output.tag != Tag::Tensor || result.dtype != DType::Float32 || result.rank != 2 ||
      static_cast<size_t>(result.sizes[1]) != rows.width) {
    return refuse("has another result");
  }
  return {};
}

Result<Span<float>> ModuleModel::step(const StepRows& rows, Message* message) {
  return run(step_, rows, message);
}

Result<Span<float>> ModuleModel::embed(const StepRows& rows, Message* message) {
  if (embed_.method == nullptr) RL_TRY(load(&embed_, message));
  return run(embed_, rows, message);
}

Result<Span<float>> ModuleModel::run(const Rows& rows_of, const StepRows& rows, Message* message) {
  Method& method = *rows_of.method;
  const Span<const int64_t> inputs[] = {rows.tokens, rows.positions, rows.sequences, rows.wanted};
  cache_.sequences = rows.tables;
  method.set_kv_cache(metadata_.facts.is_encoder ? nullptr : &cache_);
  Status status;
  for (size_t i = 0; i < 4 && status.ok(); ++i) {
    const auto count = static_cast<int32_t>(inputs[i].size());
    status = method.set_input(i, HostTensor(DType::Int64, {count}, inputs[i].data()));
  }
  if (status.ok()) status = method.execute();
  method.set_kv_cache(nullptr);
  cache_.sequences = {};
  if (!status.ok()) {
    *message = method.message();
    return status;
  }
  const Tensor& result = method.output(0).tensor();
  const auto wanted = static_cast<int64_t>(rows.wanted.size());
  if (result.numel != wanted * static_cast<int64_t>(rows_of.width)) {
    return message->fail(Code::InvalidProgram,
                         "method '%s' gave %lld numbers for %lld tokens: the program is damaged",
                         rows_of.name, static_cast<long long>(result.numel),
                         static_cast<long long>(wanted));
  }
  return Span<float>(result.as<float>(), static_cast<size_t>(result.numel));
}

uint64_t digest_of(const Module& module) {
  uint64_t digest = digest_of(module.program().image());
  const NamedData* data = module.external_data();
  const size_t count = data != nullptr ? data->n_keys() : 0;
  for (size_t i = 0; i < count; ++i) {
    const StringView key = data->key(i);
    digest = extend_digest(digest, {reinterpret_cast<const uint8_t*>(key.data()), key.size()});
    const Result<Span<const uint8_t>> bytes = data->get(key);
    if (bytes.ok()) digest = extend_digest(digest, bytes.value());
  }
  return digest;
}

}  // namespace rushlight::llm
