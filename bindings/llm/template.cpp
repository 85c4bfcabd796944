// Chat templates as Python sees them. Variables cross as JSON text: `rushlight.llm.template` is the
// face of it.
#include "rushlight/llm/template/chat_template.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "failure.h"
#include "gil.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/json/write.h"

namespace rushlight::python {

namespace {

using llm::ChatTemplate;
using llm::JsonValue;
using Ranges = std::vector<std::pair<size_t, size_t>>;

StringView view(const std::string& text) { return {text.data(), text.size()}; }

JsonValue read_json(const std::string& text) {
  Message message;
  Result<JsonValue> value = llm::parse_json(view(text), &message);
  if (!value.ok()) fail(value.status().code(), message);
  return std::move(*value);
}

ChatTemplate parse_template(const std::string& source) {
  Message message;
  Result<ChatTemplate> result = ChatTemplate::parse(view(source), &message);
  if (!result.ok()) fail(result.status().code(), message);
  return *result;
}

// The text in UTF-8, and which of its bytes came from the variables.
nb::tuple render(const ChatTemplate& self, const std::string& variables, const std::string& tokens,
                 int64_t now) {
  llm::Rendered rendered;
  Ranges data;
  {
    const GilRelease release;
    const JsonValue special = read_json(tokens);
    llm::RenderOptions options;
    options.tokens = &special;
    options.now = now;
    Message message;
    const Status status = self.render(read_json(variables), options, &rendered, &message);
    if (!status.ok()) fail(status.code(), message);
    for (const llm::TextRange& range : rendered.data) data.emplace_back(range.begin, range.end);
  }
  return nb::make_tuple(nb::bytes(rendered.text.data(), rendered.text.size()), data);
}

std::string rewrite_json(const std::string& text, const std::string& indent, bool has_lines,
                         const std::string& item_separator, const std::string& key_separator,
                         bool ascii, bool sorts_keys) {
  llm::JsonStyle style = {item_separator, key_separator, indent, has_lines, ascii, sorts_keys};
  return llm::write_json(read_json(text), style);
}

}  // namespace

void init_llm_template(nb::module_& m) {
  nb::class_<ChatTemplate>(m, "ChatTemplate")
      .def_static("parse", &parse_template, nb::arg("source"))
      .def("render", &render, nb::arg("variables"), nb::arg("tokens"), nb::arg("now"))
      .def(
          "uses",
          [](const ChatTemplate& self, const std::string& name) { return self.uses(view(name)); },
          nb::arg("name"));
  m.def("rewrite_json", &rewrite_json, nb::arg("text"), nb::arg("indent"), nb::arg("has_lines"),
        nb::arg("item_separator"), nb::arg("key_separator"), nb::arg("ascii"),
        nb::arg("sorts_keys"), "JSON text, read and written again in a style.");
}

}  // namespace rushlight::python
