// `_core.LlmOptions`: how texts are generated, a field for each option.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings.h"
#include "failure.h"
#include "llm/adapter.h"
#include "llm/grammar.h"
#include "rushlight/llm/runner/options.h"

namespace rushlight::python {

namespace {

using llm::GenerateOptions;
using llm::SamplingOptions;

template <class Value>
void add_field(nb::class_<GenerateOptions>& options, const char* name,
               Value SamplingOptions::* field) {
  options.def_prop_rw(
      name, [field](const GenerateOptions& self) { return self.sampling.*field; },
      [field](GenerateOptions& self, Value value) { self.sampling.*field = std::move(value); });
}

void check(const GenerateOptions& self, size_t vocabulary) {
  Message message;
  const Status status = self.sampling.check(vocabulary, &message);
  if (!status.ok()) fail(status.code(), message);
}

void set_bias(GenerateOptions& self, const std::vector<std::pair<int32_t, float>>& biases) {
  self.sampling.logit_bias.clear();
  for (const auto& [token, bias] : biases) self.sampling.logit_bias.push_back({token, bias});
}

}  // namespace

void init_llm_options(nb::module_& m) {
  nb::class_<GenerateOptions> options(m, "LlmOptions");
  options.attr("most_n") = llm::kMostTexts;
  options.attr("most_guesses") = llm::kMostGuesses;
  options.def(nb::init<>())
      .def("copy", [](const GenerateOptions& self) { return self; })
      .def("set_logit_bias", set_bias, nb::arg("biases"))
      .def("check", check, nb::arg("vocabulary"))
      .def(
          "set_grammar",
          [](GenerateOptions& self, const GrammarHandle& grammar) {
            self.grammar = grammar.grammar;
          },
          nb::arg("grammar"))
      .def(
          "set_adapter",
          [](GenerateOptions& self, const AdapterHandle& adapter) {
            self.adapter = adapter.adapter;
          },
          nb::arg("adapter"))
      .def_rw("max_tokens", &GenerateOptions::max_tokens)
      .def_rw("stop", &GenerateOptions::stop)
      .def_rw("stop_tokens", &GenerateOptions::stop_tokens)
      .def_rw("ignore_eos", &GenerateOptions::ignore_eos)
      .def_rw("echo", &GenerateOptions::echo)
      .def_rw("special", &GenerateOptions::special)
      .def_rw("n", &GenerateOptions::n)
      .def_rw("keep", &GenerateOptions::keep)
      .def_rw("guesses", &GenerateOptions::guesses)
      .def_prop_rw(
          "shift",
          [](const GenerateOptions& self) { return self.context_full == llm::ContextFull::Shift; },
          [](GenerateOptions& self, bool shift) {
            self.context_full = shift ? llm::ContextFull::Shift : llm::ContextFull::Stop;
          });
  add_field(options, "repetition_penalty", &SamplingOptions::repetition_penalty);
  add_field(options, "presence_penalty", &SamplingOptions::presence_penalty);
  add_field(options, "frequency_penalty", &SamplingOptions::frequency_penalty);
  add_field(options, "dry_multiplier", &SamplingOptions::dry_multiplier);
  add_field(options, "dry_base", &SamplingOptions::dry_base);
  add_field(options, "dry_allowed_length", &SamplingOptions::dry_allowed_length);
  add_field(options, "dry_range", &SamplingOptions::dry_range);
  add_field(options, "dry_breakers", &SamplingOptions::dry_breakers);
  add_field(options, "temperature", &SamplingOptions::temperature);
  add_field(options, "top_k", &SamplingOptions::top_k);
  add_field(options, "top_p", &SamplingOptions::top_p);
  add_field(options, "min_p", &SamplingOptions::min_p);
  add_field(options, "typical_p", &SamplingOptions::typical_p);
  add_field(options, "seed", &SamplingOptions::seed);
  add_field(options, "logprobs", &SamplingOptions::logprobs);
}

}  // namespace rushlight::python
