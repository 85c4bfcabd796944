// Grammars over a vocabulary, for `rushlight.llm.grammar`.
#include "rushlight/llm/grammar/grammar.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "failure.h"
#include "gil.h"
#include "llm/grammar.h"
#include "rushlight/llm/grammar/state.h"
#include "rushlight/llm/grammar/tools.h"
#include "rushlight/llm/json/parse.h"

namespace rushlight::python {
namespace {

using llm::Grammar;
using llm::GrammarOptions;
using llm::GrammarState;
using llm::Vocabulary;

using Words = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

StringView view(const std::string& text) { return {text.data(), text.size()}; }

// A tokenizer in Python. What it raises is kept from the caller: longest tokens serve then.
Vocabulary::Encode encode_by(nb::object object) {
  // A grammar may be destroyed by a thread that does not hold the GIL.
  const std::shared_ptr<nb::object> function(new nb::object(std::move(object)),
                                             [](nb::object* last) {
                                               const GilAcquire acquire;
                                               delete last;
                                             });
  return [function](StringView text, std::vector<int32_t>* tokens) {
    const GilAcquire acquire;
    try {
      const nb::bytes bytes(text.data(), text.size());
      for (const int32_t token : nb::cast<std::vector<int32_t>>((*function)(bytes))) {
        tokens->push_back(token);
      }
      return true;
    } catch (...) {
      return false;
    }
  };
}

VocabularyHandle make_vocabulary(const nb::sequence& pieces, std::vector<int32_t> special,
                                 std::vector<int32_t> ends, nb::object encode) {
  Vocabulary::Parts parts;
  for (const nb::handle piece : pieces) {
    const auto bytes = nb::cast<nb::bytes>(piece);
    parts.pieces.emplace_back(bytes.c_str(), bytes.size());
  }
  parts.special = std::move(special);
  parts.ends = std::move(ends);
  if (!encode.is_none()) parts.encode = encode_by(std::move(encode));
  Message message;
  auto vocabulary = Vocabulary::make(std::move(parts), &message);
  if (!vocabulary.ok()) fail(vocabulary.status().code(), message);
  return {std::move(*vocabulary)};
}

GrammarOptions options_of(const std::string& white_space, const std::string& reasoning,
                          size_t cache_bytes) {
  GrammarOptions options;
  options.white_space = white_space == "compact"  ? GrammarOptions::WhiteSpace::Compact
                        : white_space == "spaced" ? GrammarOptions::WhiteSpace::Spaced
                                                  : GrammarOptions::WhiteSpace::Flexible;
  options.reasoning = reasoning == "open"       ? llm::Reasoning::Open
                      : reasoning == "optional" ? llm::Reasoning::Optional
                                                : llm::Reasoning::None;
  options.cache_bytes = cache_bytes;
  return options;
}

GrammarHandle regex_grammar(const std::string& pattern, const VocabularyHandle& vocabulary,
                            size_t cache_bytes) {
  Message message;
  const GilRelease release;
  auto grammar = Grammar::from_regex(view(pattern), vocabulary.vocabulary,
                                     options_of("compact", "none", cache_bytes), &message);
  if (!grammar.ok()) fail(grammar.status().code(), message);
  return {std::move(*grammar)};
}

GrammarHandle schema_grammar(const std::string& schema, const VocabularyHandle& vocabulary,
                             const std::string& white_space, const std::string& reasoning,
                             size_t cache_bytes) {
  Message message;
  const GilRelease release;
  const auto value = llm::parse_json(view(schema), &message);
  if (!value.ok()) fail(value.status().code(), message);
  auto grammar =
      Grammar::from_json_schema(value.value(), vocabulary.vocabulary,
                                options_of(white_space, reasoning, cache_bytes), &message);
  if (!grammar.ok()) fail(grammar.status().code(), message);
  return {std::move(*grammar)};
}

// `format`: (begin, end, separator, is_list, key of the name, key of the arguments), or a family.
GrammarHandle tools_grammar(const std::string& tools, const std::string& choice, bool parallel,
                            const nb::object& format, const VocabularyHandle& vocabulary,
                            const std::string& white_space, const std::string& reasoning,
                            size_t cache_bytes) {
  Message message;
  llm::ToolFormat used;
  if (nb::isinstance<nb::str>(format)) {
    const auto family = nb::cast<std::string>(format);
    const llm::ToolFormat* known = llm::tool_format(view(family));
    if (known == nullptr) {
      fail(Code::NotSupported, "models of the family '" + family +
                                   "' have no form for calls of tools: give the markers");
    }
    used = *known;
  } else {
    std::tie(used.begin, used.end, used.separator, used.is_list, used.name, used.arguments) =
        nb::cast<std::tuple<std::string, std::string, std::string, bool, std::string, std::string>>(
            format);
  }
  const GilRelease release;
  const auto listed = llm::parse_json(view(tools), &message);
  if (!listed.ok()) fail(listed.status().code(), message);
  const auto chosen = llm::parse_json(view(choice), &message);
  if (!chosen.ok()) fail(chosen.status().code(), message);
  auto grammar =
      llm::grammar_from_tools(listed.value(), chosen.value(), parallel, used, vocabulary.vocabulary,
                              options_of(white_space, reasoning, cache_bytes), &message);
  if (!grammar.ok()) fail(grammar.status().code(), message);
  return {std::move(*grammar)};
}

void bind_state(nb::module_& m) {
  nb::class_<GrammarState>(m, "GrammarState")
      .def(
          "__init__",
          [](GrammarState* self, const GrammarHandle& grammar, size_t history) {
            new (self) GrammarState(grammar.grammar, history);
          },
          nb::arg("grammar"), nb::arg("history"))
      .def("mask",
           [](GrammarState& self, const Words& words) {
             if (words.size() != self.grammar().mask_words()) {
               throw nb::value_error("the array has another number of words than the mask");
             }
             const GilRelease release;
             self.mask(words.data());
           })
      .def("accept", &GrammarState::accept)
      .def("accept_text",
           [](GrammarState& self, const nb::bytes& text) {
             return self.accept_text({text.c_str(), text.size()});
           })
      .def("forced",
           [](GrammarState& self) {
             std::vector<int32_t> tokens;
             self.forced(&tokens);
             return tokens;
           })
      .def("forced_text",
           [](GrammarState& self) {
             std::string text;
             self.forced_text(&text);
             return nb::bytes(text.data(), text.size());
           })
      .def("can_end", &GrammarState::can_end)
      .def("must_end", &GrammarState::must_end)
      .def("has_ended", &GrammarState::has_ended)
      .def("rewind", &GrammarState::rewind)
      .def("fork", [](const GrammarState& self) { return GrammarState(self); });
}

}  // namespace

void init_grammar(nb::module_& m) {
  nb::class_<VocabularyHandle>(m, "Vocabulary")
      .def(
          "__init__",
          [](VocabularyHandle* self, const nb::sequence& pieces, std::vector<int32_t> special,
             std::vector<int32_t> ends, nb::object encode) {
            new (self) VocabularyHandle(
                make_vocabulary(pieces, std::move(special), std::move(ends), std::move(encode)));
          },
          nb::arg("pieces"), nb::arg("special"), nb::arg("ends"), nb::arg("encode").none())
      .def("__len__", [](const VocabularyHandle& self) { return self.vocabulary->size(); });
  nb::class_<GrammarHandle>(m, "Grammar")
      .def("mask_words", [](const GrammarHandle& self) { return self.grammar->mask_words(); })
      .def("cache_bytes", [](const GrammarHandle& self) { return self.grammar->cache_bytes(); })
      .def("bytes", [](const GrammarHandle& self) { return self.grammar->bytes(); });
  m.def("regex_grammar", &regex_grammar, nb::arg("pattern"), nb::arg("vocabulary"),
        nb::arg("cache_bytes"));
  m.def("schema_grammar", &schema_grammar, nb::arg("schema"), nb::arg("vocabulary"),
        nb::arg("white_space"), nb::arg("reasoning"), nb::arg("cache_bytes"));
  m.def("tools_grammar", &tools_grammar, nb::arg("tools"), nb::arg("choice"), nb::arg("parallel"),
        nb::arg("format"), nb::arg("vocabulary"), nb::arg("white_space"), nb::arg("reasoning"),
        nb::arg("cache_bytes"));
  bind_state(m);
}

}  // namespace rushlight::python
