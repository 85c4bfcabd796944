// `_core.llm_sample`: the sampler by itself, for tests and for users with logits of their own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "bindings.h"
#include "failure.h"
#include "rushlight/llm/runner/options.h"
#include "rushlight/llm/sampling/sampler.h"

namespace rushlight::python {

namespace {

// `logits` are float32. Returns the token, and the tokens and weights that it was drawn from, which
// are empty if the temperature is 0.
nb::object sample(const nb::bytes& logits, const llm::GenerateOptions& options,
                  const std::vector<int32_t>& history, size_t prompt, uint64_t stream,
                  uint64_t index, nb::object mask) {
  std::vector<float> values(logits.size() / sizeof(float));
  std::memcpy(values.data(), logits.c_str(), values.size() * sizeof(float));
  std::vector<uint32_t> bits((values.size() + 31) / 32);
  Message message;
  if (values.empty()) fail(Code::InvalidArgument, "there are no logits");
  Status status = options.sampling.check(values.size(), &message);
  if (!status.ok()) fail(status.code(), message);
  for (const int32_t token : history) {
    if (token < 0 || static_cast<size_t>(token) >= values.size()) {
      fail(Code::InvalidArgument, "the history has a token that has no logit");
    }
  }
  if (!mask.is_none()) {
    const auto words = nb::cast<nb::bytes>(mask);
    if (words.size() != bits.size() * sizeof(uint32_t)) {
      fail(Code::InvalidArgument, "the mask has not a bit for each logit, in whole words");
    }
    std::memcpy(bits.data(), words.c_str(), words.size());
  }
  llm::Sampler sampler;
  sampler.reserve(values.size(), history.size());
  llm::Drawn drawn;
  status = sampler.sample({values.data(), values.size()}, mask.is_none() ? nullptr : bits.data(),
                          {{history.data(), history.size()}, prompt}, options.sampling,
                          {stream, index}, &drawn, &message);
  if (!status.ok()) fail(status.code(), message);
  nb::list tokens, weights;
  for (const int32_t token : sampler.candidates().tokens()) tokens.append(token);
  for (const float weight : sampler.candidates().weights()) weights.append(weight);
  return nb::make_tuple(drawn.token, tokens, weights);
}

}  // namespace

void init_llm_sampling(nb::module_& m) {
  m.def("llm_sample", sample, nb::arg("logits"), nb::arg("options"), nb::arg("history"),
        nb::arg("prompt"), nb::arg("stream"), nb::arg("index"), nb::arg("mask").none());
}

}  // namespace rushlight::python
