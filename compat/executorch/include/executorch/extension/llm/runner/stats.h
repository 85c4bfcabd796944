// Times and counts of a text, in milliseconds.
#pragma once

#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/llm/sampler/sampler.h>
#include <executorch/runtime/platform/log.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

namespace executorch::extension::llm {

struct Stats {
  const long SCALING_FACTOR_UNITS_PER_SECOND = 1000;
  long model_load_start_ms = 0;
  long model_load_end_ms = 0;
  long inference_start_ms = 0;  // after the model is loaded, before the prompt becomes tokens
  long token_encode_end_ms = 0;
  long model_execution_start_ms = 0;
  long model_execution_end_ms = 0;
  long prompt_eval_end_ms = 0;
  long first_token_ms = 0;
  long inference_end_ms = 0;
  long aggregate_sampling_time_ms = 0;  // of samplers that the application calls by itself
  int64_t num_prompt_tokens = 0;
  int64_t num_generated_tokens = 0;

  void on_sampling_begin() { sampling_start_ms_ = time_in_ms(); }
  void on_sampling_end() {
    aggregate_sampling_time_ms += time_in_ms() - sampling_start_ms_;
    sampling_start_ms_ = 0;
  }
  // The times of the model's load stay unless `all_stats`.
  void reset(bool all_stats = false) {
    if (all_stats) model_load_start_ms = model_load_end_ms = 0;
    inference_start_ms = token_encode_end_ms = 0;
    model_execution_start_ms = model_execution_end_ms = 0;
    prompt_eval_end_ms = first_token_ms = inference_end_ms = 0;
    aggregate_sampling_time_ms = 0;
    num_prompt_tokens = num_generated_tokens = 0;
    sampling_start_ms_ = 0;
  }

 private:
  long sampling_start_ms_ = 0;
};

inline std::string stats_to_json_string(const Stats& stats) {
  std::string json = "{";
  const auto add = [&](const char* name, int64_t number) {
    if (json.size() > 1) json += ',';
    json += std::string("\"") + name + "\":" + std::to_string(number);
  };
  add("prompt_tokens", stats.num_prompt_tokens);
  add("generated_tokens", stats.num_generated_tokens);
  add("model_load_start_ms", stats.model_load_start_ms);
  add("model_load_end_ms", stats.model_load_end_ms);
  add("inference_start_ms", stats.inference_start_ms);
  add("inference_end_ms", stats.inference_end_ms);
  add("prompt_eval_end_ms", stats.prompt_eval_end_ms);
  add("first_token_ms", stats.first_token_ms);
  add("aggregate_sampling_time_ms", stats.aggregate_sampling_time_ms);
  add("SCALING_FACTOR_UNITS_PER_SECOND", stats.SCALING_FACTOR_UNITS_PER_SECOND);
  return json + "}";
}

// The line of JSON to standard output, and lines for people to the log.
inline void print_report(const Stats& stats) {
  std::printf("PyTorchObserver %s\n", stats_to_json_string(stats).c_str());
  const auto report = [&](const char* what, long from, long to, int64_t tokens) {
    const double seconds =
        static_cast<double>(to - from) / static_cast<double>(stats.SCALING_FACTOR_UNITS_PER_SECOND);
    const double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
    ET_LOG(Info, "%s: %.3f s, %" PRId64 " tokens, %.1f tokens/s", what, seconds, tokens, rate);
  };
  report("Model load", stats.model_load_start_ms, stats.model_load_end_ms, 0);
  report("Total inference", stats.inference_start_ms, stats.inference_end_ms,
         stats.num_generated_tokens);
  report("Prompt", stats.inference_start_ms, stats.prompt_eval_end_ms, stats.num_prompt_tokens);
  report("Generation", stats.prompt_eval_end_ms, stats.inference_end_ms,
         stats.num_generated_tokens);
  report("First token", stats.inference_start_ms, stats.first_token_ms, 1);
}

}  // namespace executorch::extension::llm

namespace executorch::llm {
using ::executorch::extension::llm::kTopp;
using ::executorch::extension::llm::print_report;
using ::executorch::extension::llm::Stats;
}  // namespace executorch::llm
