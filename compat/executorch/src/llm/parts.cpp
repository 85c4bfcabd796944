// The parts of a runner, over the methods of a Module.
#include <executorch/extension/llm/runner/text_decoder_runner.h>
#include <executorch/extension/llm/runner/text_prefiller.h>
#include <executorch/extension/llm/runner/text_token_generator.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>
#include <numeric>

namespace executorch::extension::llm {

using runtime::Error;
using runtime::EValue;
using runtime::Result;

Result<aten::Tensor> TextDecoderRunner::step(TensorPtr& input, int64_t start_pos) {
  ET_ASSIGN_OR_RETURN(meta, module_->method_meta("forward"));
  std::vector<EValue> inputs = {input};
  std::vector<int64_t> positions(1, start_pos);
  TensorPtr position;
  const bool has_cache = meta.num_inputs() > 1;
  if (has_cache) {
    // One position of the first token, or one of each.
    ET_ASSIGN_OR_RETURN(info, meta.input_tensor_meta(1));
    const bool is_each = info.sizes().size() > 0 && info.sizes()[0] > 1;
    if (is_each) positions.resize(static_cast<size_t>(input->numel()));
    std::iota(positions.begin(), positions.end(), start_pos);
    position = from_blob(positions.data(), {static_cast<aten::SizesType>(positions.size())},
                         aten::ScalarType::Long);
    ET_ASSIGN_OR_RETURN(prepared, io_manager_->prepare_decode(input, position));
    inputs = prepared;
  }
  ET_ASSIGN_OR_RETURN(outputs, module_->forward(inputs));
  if (has_cache) ET_CHECK_OK_OR_RETURN_ERROR(io_manager_->update_decode(outputs));
  ET_CHECK_OR_RETURN_ERROR(outputs.size() == 1 && outputs[0].isTensor(), InvalidProgram,
                           "`forward` of a language model returns logits alone, but this one "
                           "returns %zu values",
                           outputs.size());
  const aten::Tensor logits = outputs[0].toTensor();
  const aten::ScalarType type = logits.scalar_type();
  const bool is_real = type == aten::ScalarType::Float || type == aten::ScalarType::Half ||
                       type == aten::ScalarType::BFloat16;
  ET_CHECK_OR_RETURN_ERROR(is_real && logits.dim() > 0 && logits.numel() > 0, InvalidProgram,
                           "`forward` of a language model returns logits in float, half or "
                           "bfloat16, but this one returns %lld elements of type %s",
                           static_cast<long long>(logits.numel()), runtime::toString(type));
  return logits;
}

int32_t TextDecoderRunner::logits_to_token(const aten::Tensor& logits_tensor, float temperature) {
  const auto vocabulary = static_cast<int32_t>(logits_tensor.size(logits_tensor.dim() - 1));
  Sampler sampler(vocabulary, temperature);
  // Those of the last token.
  const ssize_t begin = logits_tensor.numel() - vocabulary;
  switch (logits_tensor.scalar_type()) {
    case aten::ScalarType::Float:
      return sampler.sample(logits_tensor.mutable_data_ptr<float>() + begin);
    case aten::ScalarType::Half:
      return sampler.sample(logits_tensor.mutable_data_ptr<aten::Half>() + begin);
    case aten::ScalarType::BFloat16:
      return sampler.sample(logits_tensor.mutable_data_ptr<aten::BFloat16>() + begin);
    default:
      ET_CHECK_MSG(false, "logits are of type %d: float, half and bfloat16 are known",
                   static_cast<int>(logits_tensor.scalar_type()));
  }
  return 0;
}

TextPrefiller::TextPrefiller(TextDecoderRunner* text_decoder_runner, bool use_kv_cache,
                             bool enable_parallel_prefill, int64_t max_seq_len)
    : decoder_(text_decoder_runner),
      use_kv_cache_(use_kv_cache),
      enable_parallel_prefill_(enable_parallel_prefill),
      max_seq_len_(max_seq_len > 0 ? max_seq_len : 128) {}

Result<uint64_t> TextPrefiller::prefill(std::vector<uint64_t>& prompt_tokens, int64_t& start_pos) {
  ET_CHECK_OR_RETURN_ERROR(!prompt_tokens.empty(), InvalidArgument, "the prompt has no token");
  if (!decoder_->is_method_loaded()) ET_CHECK_OK_OR_RETURN_ERROR(decoder_->load());
  const auto count = static_cast<int64_t>(prompt_tokens.size());
  const int64_t at_once = !use_kv_cache_ ? count : enable_parallel_prefill_ ? max_seq_len_ : 1;
  uint64_t next = 0;
  for (int64_t begin = 0; begin < count; begin += at_once) {
    const int64_t rows = std::min(at_once, count - begin);
    auto tokens = from_blob(prompt_tokens.data() + begin, {1, static_cast<aten::SizesType>(rows)},
                            aten::ScalarType::Long);
    ET_ASSIGN_OR_RETURN(logits, decoder_->step(tokens, start_pos));
    start_pos += rows;
    if (begin + rows == count) next = static_cast<uint64_t>(decoder_->logits_to_token(logits));
  }
  return next;
}

Result<std::string> TextTokenGenerator::text_of(uint64_t before, uint64_t token) const {
  // Models may have more tokens than their tokenizers.
  if (token >= static_cast<uint64_t>(tokenizer_->vocab_size())) return std::string();
  const auto piece = tokenizer_->decode(before, token);
  ET_CHECK_TK_OK_OR_RETURN_ERROR(piece.error());
  return piece.get();
}

Result<int64_t> TextTokenGenerator::generate(
    std::vector<uint64_t> tokens, int64_t start_pos, int32_t max_new_tokens, float temperature,
    const std::function<void(const std::string&)>& token_callback) {
  ET_CHECK_OR_RETURN_ERROR(!tokens.empty(), InvalidArgument, "there is no token to go on from");
  is_stopped_ = false;
  int64_t count = 0;
  while (count < max_new_tokens && !is_stopped_) {
    const uint64_t last = tokens.back();
    const size_t rows = use_kv_cache_ ? 1 : tokens.size();
    auto input = from_blob(tokens.data() + (tokens.size() - rows),
                           {1, static_cast<aten::SizesType>(rows)}, aten::ScalarType::Long);
    ET_ASSIGN_OR_RETURN(logits, decoder_->step(input, start_pos + count));
    stats_->on_sampling_begin();
    const auto next = static_cast<uint64_t>(decoder_->logits_to_token(logits, temperature));
    stats_->on_sampling_end();
    tokens.push_back(next);
    ++count;
    if (ends(next)) break;
    ET_ASSIGN_OR_RETURN(piece, text_of(last, next));
    if (token_callback && !piece.empty()) token_callback(piece);
  }
  return count;
}

}  // namespace executorch::extension::llm
