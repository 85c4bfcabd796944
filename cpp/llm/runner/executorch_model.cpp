#include "rushlight/llm/runner/executorch_model.h"

#include <algorithm>
#include <cstring>

#include "rushlight/kernel/loops/half.h"
#include "rushlight/llm/pages/page_table.h"

namespace rushlight::llm {
namespace {

constexpr char kMethod[] = "forward";
// The rows of a step whose logits can be had, of a program that gives those of all rows: as many as
// speculation verifies at a time.
constexpr size_t kMostWanted = 16;

// Operators whose state depends on more than the tokens at positions before the current one: caches
// that are overwritten in a ring, and recurrent layers. A text can only be continued, or computed
// from its beginning. The sizes of the state say so, too, but programs without names of their
// buffers do not list what these operators write.
constexpr const char* kNotRewound[] = {"llama::update_cache_with_indices",
                                       "llama::channelwise_gated_delta_rule"};

Status not_this_form(Message* message, const char* reason) {
  return message->fail(Code::NotSupported,
                       "the program is no language model: it has no method 'step', and %s. Make "
                       "one with rushlight.llm.export, or run this one with rushlight.load",
                       reason);
}

bool has_method(const Program& program, StringView name) {
  for (size_t i = 0; i < program.n_methods(); ++i) {
    if (program.method_name(i) == name) return true;
  }
  return false;
}

// The integers that a method without inputs returns; empty if there is none.
std::vector<int64_t> integers_of(const Program& program, StringView name) {
  std::vector<int64_t> values;
  if (!has_method(program, name)) return values;
  const Result<MethodMeta> meta = program.method_meta(name);
  if (!meta.ok() || meta.value().n_inputs() != 0) return values;
  for (size_t i = 0; i < meta.value().n_outputs(); ++i) {
    const ValueMeta value = meta.value().output(i);
    if (value.tag == Tag::Int || value.tag == Tag::Bool) values.push_back(value.i);
  }
  return values;
}

int64_t integer_of(const Program& program, StringView name, int64_t otherwise) {
  const std::vector<int64_t> values = integers_of(program, name);
  return values.size() == 1 ? values[0] : otherwise;
}

// Whether state has a place for each position, so that what was written later does no harm: keys
// and values, or their scales, as [1, positions, heads, width] or [1, heads, positions, width].
bool is_cache(const TensorMeta& state, size_t context) {
  const auto has_all = [&](size_t dim) { return static_cast<size_t>(state.sizes[dim]) >= context; };
  return state.rank == 4 && state.sizes[0] == 1 && (has_all(1) || has_all(2));
}

Status refuse_size(Message* message, const char* what, int64_t size) {
  return message->fail(Code::InvalidProgram,
                       "the program has a %s of %lld tokens; this runtime takes at most %lld: "
                       "export it with fewer",
                       what, static_cast<long long>(size), static_cast<long long>(kMostTokens));
}

bool is_token(int64_t value, size_t vocabulary) {
  return value >= 0 && static_cast<size_t>(value) < vocabulary;
}

uint8_t* token_in(const KvSequence& table, size_t position) {
  return table.pages[position / kPageTokens] + position % kPageTokens * sizeof(int32_t);
}

int32_t token_at(const KvSequence& table, size_t position) {
  int32_t token;
  std::memcpy(&token, token_in(table, position), sizeof token);
  return token;
}

template <class From>
void widen_row(const void* from, size_t first, size_t count, float* to) {
  const From* numbers = static_cast<const From*>(from) + first;
  for (size_t i = 0; i < count; ++i) to[i] = kernels::plain::widen(numbers[i]);
}

}  // namespace

// The rows of one text in a step.
struct ExecutorchModel::Text {
  size_t first = 0;  // row
  size_t end = 0;    // row
  size_t begin = 0;  // the position of the first row
};

// --- opening ------------------------------------------------------------------------------------

Status ExecutorchModel::open(Message* message) {
  const Program& program = module_->program();
  if (!has_method(program, kMethod)) return not_this_form(message, "no method 'forward'");
  const Result<MethodMeta> meta = program.method_meta(kMethod, message);
  if (!meta.ok()) return meta.status();
  RL_TRY(read_inputs(meta.value(), message));
  RL_TRY(read_logits(meta.value(), message));
  RL_TRY(read_metadata_methods(message));
  const Result<Method*> method = module_->method(kMethod);
  if (!method.ok()) {
    *message = module_->message();
    return method.status();
  }
  method_ = method.value();
  RL_TRY(read_state(meta.value(), message));
  ModelFacts& facts = metadata_.facts;
  facts.texts = 1;
  // Guesses that are wrong are taken back.
  facts.wanted = has_all_logits_ && can_rewind_ ? std::min(facts.batch, kMostWanted) : 1;
  facts.page_bytes = kPageTokens * sizeof(int32_t);
  held_.reserve(facts.context);
  text_.reserve(facts.context);
  tokens_.resize(facts.batch);
  positions_.resize(facts.batch);
  logits_.resize(facts.wanted * facts.vocabulary);
  return {};
}

Status ExecutorchModel::read_state(const MethodMeta& meta, Message* message) {
  for (size_t i = 0; i < meta.n_operators(); ++i) {
    for (const char* name : kNotRewound) {
      if (meta.operator_name(i).name == StringView(name)) can_rewind_ = false;
    }
  }
  const Result<Span<const StateEntry>> state = module_->state();
  if (!state.ok()) {
    *message = module_->message();
    return state.status();
  }
  for (const StateEntry& entry : state.value()) {
    if (!is_cache(entry.tensor, metadata_.facts.context)) can_rewind_ = false;
  }
  return {};
}

Status ExecutorchModel::read_inputs(const MethodMeta& meta, Message* message) {
  const char* form = "its method 'forward' does not take tokens [1, n] and a position, int64";
  if (meta.n_inputs() == 1) {
    return not_this_form(message,
                         "its method 'forward' takes no position, so it has no cache: export it "
                         "with use_kv_cache");
  }
  if (meta.n_inputs() != 2) return not_this_form(message, form);
  const TensorMeta tokens = meta.input(0).tensor, position = meta.input(1).tensor;
  for (size_t i = 0; i < 2; ++i) {
    const ValueMeta input = meta.input(i);
    if (input.tag != Tag::Tensor || input.tensor.dtype != DType::Int64) {
      return not_this_form(message, form);
    }
  }
  if (tokens.rank != 2 || tokens.sizes[0] != 1 || tokens.sizes[1] < 1 || position.rank != 1 ||
      position.sizes[0] < 1) {
    return not_this_form(message, form);
  }
  if (tokens.dynamism == Dynamism::Static && tokens.sizes[1] != 1) {
    return message->fail(Code::NotSupported,
                         "the program's method 'forward' takes %d tokens, never fewer: export it "
                         "with enable_dynamic_shape, or for one token",
                         static_cast<int>(tokens.sizes[1]));
  }
  has_positions_ = position.sizes[0] > 1;
  metadata_.facts.batch = static_cast<size_t>(tokens.sizes[1]);
  return {};
}

Status ExecutorchModel::read_logits(const MethodMeta& meta, Message* message) {
  const char* form = "its method 'forward' does not return logits [1, vocabulary]";
  if (meta.n_outputs() != 1) return not_this_form(message, form);
  const ValueMeta output = meta.output(0);
  const TensorMeta& logits = output.tensor;
  const bool fits = output.tag == Tag::Tensor && is_floating(logits.dtype) &&
                    logits.dtype != DType::Float64 && (logits.rank == 2 || logits.rank == 3) &&
                    logits.sizes[0] == 1;
  if (!fits) return not_this_form(message, form);
  const int32_t vocabulary = logits.sizes[logits.rank - 1];
  if (vocabulary < 1) return not_this_form(message, form);
  if (vocabulary > kMostTokens) return refuse_size(message, "vocabulary", vocabulary);
  has_all_logits_ = logits.rank == 3 && logits.sizes[1] > 1;
  metadata_.facts.vocabulary = static_cast<size_t>(vocabulary);
  return {};
}

// What rushlight.llm.export says of its own programs is used as well; the method's inputs and
// logits are the program's in any case.
Status ExecutorchModel::read_metadata_methods(Message* message) {
  const Program& program = module_->program();
  const ModelFacts facts = metadata_.facts;
  const Result<Span<const uint8_t>> json = program.get(kMetadataKey);
  if (json.ok()) {
    const auto* text = reinterpret_cast<const char*>(json.value().data());
    Result<Metadata> told = read_metadata({text, json.value().size()}, message);
    if (!told.ok()) return told.status();
    metadata_ = std::move(told.value());
    metadata_.facts = facts;
  }
  if (integer_of(program, "use_kv_cache", 1) == 0) {
    return not_this_form(message, "was exported without a cache: export it with use_kv_cache");
  }
  const int64_t rows = integer_of(program, "get_max_seq_len", 0);
  const int64_t context = integer_of(program, "get_max_context_len", rows);
  if (context < 1) {
    return not_this_form(message, "no method 'get_max_seq_len' that says its context");
  }
  if (context > kMostTokens) return refuse_size(message, "context", context);
  metadata_.facts.context = static_cast<size_t>(context);
  size_t most = metadata_.facts.context;
  if (rows > 0) most = std::min(most, static_cast<size_t>(rows));
  metadata_.facts.batch = std::min(facts.batch, most);
  if (json.ok()) return {};
  const int64_t bos = integer_of(program, "get_bos_id", -1);
  if (is_token(bos, facts.vocabulary)) metadata_.bos = static_cast<int32_t>(bos);
  for (const char* name : {"get_eos_ids", "get_eos_id"}) {
    for (const int64_t end : integers_of(program, name)) {
      if (is_token(end, facts.vocabulary)) metadata_.ends.push_back(static_cast<int32_t>(end));
    }
    if (!metadata_.ends.empty()) break;
  }
  metadata_.defaults.sampling.temperature = 0.0f;
  return {};
}

// --- steps --------------------------------------------------------------------------------------

Result<Span<float>> ExecutorchModel::step(const StepRows& rows, Message* message) {
  for (Text text; text.end < rows.tokens.size();) {
    text.first = text.end++;
    while (text.end < rows.tokens.size() &&
           rows.sequences[text.end] == rows.sequences[text.first]) {
      ++text.end;
    }
    RL_TRY(read_rows(rows, &text, message));
    RL_TRY(run_text(rows, text, message));
  }
  return Span<float>(logits_.data(), rows.wanted.size() * metadata_.facts.vocabulary);
}

// Never called, since facts() say that there are no embeddings.
Result<Span<float>> ExecutorchModel::embed(const StepRows&, Message* message) {
  return message->fail(Code::NotSupported, "a program of this form gives no embeddings");
}

// Writes the rows' tokens into the pages of their text, and reads the whole text.
Status ExecutorchModel::read_rows(const StepRows& rows, Text* text, Message* message) {
  const KvSequence& table = rows.tables[static_cast<size_t>(rows.sequences[text->first])];
  text->begin = static_cast<size_t>(rows.positions[text->first]);
  const size_t count = text->begin + (text->end - text->first);
  if (count > metadata_.facts.context || pages_for(count) > table.n_pages) {
    return message->fail(Code::InvalidArgument,
                         "a text of %zu tokens does not fit the context of %zu, or its %zu pages",
                         count, metadata_.facts.context, table.n_pages);
  }
  for (size_t i = text->first; i < text->end; ++i) {
    const auto token = static_cast<int32_t>(rows.tokens[i]);
    const size_t position = text->begin + (i - text->first);
    if (static_cast<size_t>(rows.positions[i]) != position) {
      return message->fail(Code::InvalidArgument, "the rows of a text leave positions out");
    }
    std::memcpy(token_in(table, position), &token, sizeof token);
  }
  text_.clear();
  for (size_t position = 0; position < count; ++position) {
    text_.push_back(token_at(table, position));
  }
  return {};
}

Status ExecutorchModel::run_text(const StepRows& rows, const Text& text, Message* message) {
  const auto mismatch = std::mismatch(
      held_.begin(), held_.begin() + static_cast<ptrdiff_t>(std::min(held_.size(), text.begin)),
      text_.begin());
  auto begin = static_cast<size_t>(mismatch.first - held_.begin());
  if (!can_rewind_ && begin < held_.size()) begin = 0;
  while (begin < text_.size()) {
    size_t end = std::min(text_.size(), begin + metadata_.facts.batch);
    const auto position_of = [&](int64_t row) {
      return text.begin + static_cast<size_t>(row) - text.first;
    };
    const auto is_here = [&](int64_t row) {
      return static_cast<size_t>(row) >= text.first && static_cast<size_t>(row) < text.end &&
             position_of(row) >= begin && position_of(row) < end;
    };
    for (const int64_t row : rows.wanted) {
      if (!has_all_logits_ && is_here(row)) end = position_of(row) + 1;
    }
    RL_TRY(run(begin, end, message));
    for (size_t i = 0; i < rows.wanted.size(); ++i) {
      if (!is_here(rows.wanted[i])) continue;
      const size_t row = has_all_logits_ ? position_of(rows.wanted[i]) - begin : 0;
      RL_TRY(take_logits(row, i, message));
    }
    begin = end;
  }
  return {};
}

// Computes positions begin..end-1 of the text, which follow what the cache holds.
Status ExecutorchModel::run(size_t begin, size_t end, Message* message) {
  if (begin == 0 && !can_rewind_) {
    if (!module_->reset_state().ok()) {
      *message = module_->message();
      return Code::Internal;
    }
  }
  held_.resize(begin);
  const size_t count = end - begin;
  for (size_t i = 0; i < count; ++i) {
    tokens_[i] = text_[begin + i];
    positions_[i] = static_cast<int64_t>(begin + i);
  }
  const auto rows = static_cast<int32_t>(count);
  Status status = method_->set_input(0, HostTensor(DType::Int64, {1, rows}, tokens_.data()));
  if (status.ok()) {
    const HostTensor positions(DType::Int64, {has_positions_ ? rows : 1}, positions_.data());
    status = method_->set_input(1, positions);
  }
  if (status.ok()) status = method_->execute();
  if (!status.ok()) {
    if (!can_rewind_) held_.clear();
    *message = method_->message();
    return status;
  }
  for (size_t i = begin; i < end; ++i) held_.push_back(text_[i]);
  return {};
}

// Copies a row of the last run's logits to the step's `wanted`-th ones.
Status ExecutorchModel::take_logits(size_t row, size_t wanted, Message* message) {
  const Tensor& logits = method_->output(0).tensor();
  const size_t vocabulary = metadata_.facts.vocabulary;
  const size_t first = row * vocabulary;
  if (static_cast<size_t>(logits.numel) < first + vocabulary ||
      (wanted + 1) * vocabulary > logits_.size()) {
    return message->fail(Code::InvalidProgram,
                         "method 'forward' gave %lld logits, too few for row %zu of %zu tokens: "
                         "the program is damaged",
                         static_cast<long long>(logits.numel), row, vocabulary);
  }
  float* to = logits_.data() + wanted * vocabulary;
  if (logits.dtype == DType::Float16) {
    widen_row<kernels::plain::Half>(logits.data, first, vocabulary, to);
  } else if (logits.dtype == DType::BFloat16) {
    widen_row<kernels::plain::BFloat>(logits.data, first, vocabulary, to);
  } else {
    std::memcpy(to, logits.as<float>() + first, vocabulary * sizeof(float));
  }
  return {};
}

size_t ExecutorchModel::kept(const KvSequence& table, size_t count) const {
  const size_t most = std::min(count, held_.size());
  size_t equal = 0;
  while (equal < most && held_[equal] == token_at(table, equal)) ++equal;
  return can_rewind_ || equal == held_.size() ? equal : 0;
}

}  // namespace rushlight::llm
