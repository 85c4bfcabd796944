// Replies taken apart, as Python sees them: `rushlight.llm.template.reply` is the face of it.
#include "rushlight/llm/reply/reply.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bindings.h"
#include "failure.h"

namespace rushlight::python {

namespace {

using llm::ReplyParser;
using llm::ReplyPart;

StringView view(const std::string& text) { return {text.data(), text.size()}; }

nb::bytes bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// (content, reasoning, calls), each call as (id, name, arguments); all text as UTF-8.
nb::tuple as_tuple(const ReplyPart& part) {
  nb::list calls;
  for (const llm::ToolCall& call : part.calls) {
    calls.append(nb::make_tuple(bytes(call.id), bytes(call.name), bytes(call.arguments)));
  }
  return nb::make_tuple(bytes(part.content), bytes(part.reasoning), calls);
}

const llm::ReplyFormat& format_of(const std::string& name) {
  const llm::ReplyFormat* format = llm::find_reply_format(view(name));
  if (format != nullptr) return *format;
  std::string names;
  for (const llm::ReplyFormat& one : llm::reply_formats()) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  fail(Code::InvalidArgument, "there is no reply format '" + name + "'; there are " + names);
}

}  // namespace

void init_llm_reply(nb::module_& m) {
  nb::class_<ReplyParser>(m, "ReplyParser")
      .def(
          "__init__",
          [](ReplyParser* self, const std::string& format, bool takes_calls, bool takes_reasoning,
             bool in_reasoning) {
            const llm::ReplyOptions options = {takes_calls, takes_reasoning, in_reasoning};
            new (self) ReplyParser(format_of(format), options);
          },
          nb::arg("format"), nb::arg("takes_calls"), nb::arg("takes_reasoning"),
          nb::arg("in_reasoning"))
      .def(
          "push",
          [](ReplyParser& self, const nb::bytes& text) {
            ReplyPart part;
            self.push({text.c_str(), text.size()}, &part);
            return as_tuple(part);
          },
          nb::arg("text"))
      .def("finish", [](ReplyParser& self) {
        ReplyPart part;
        self.finish(&part);
        return as_tuple(part);
      });
  m.def(
      "reply_format_of",
      [](const std::string& source) { return llm::reply_format_of(view(source)).name; },
      nb::arg("source"), "The name of the reply format that a chat template shows.");
  m.def(
      "opens_reasoning",
      [](const std::string& prompt) { return llm::opens_reasoning(view(prompt)); },
      nb::arg("prompt"), "Whether a prompt ends within a block of reasoning.");
}

}  // namespace rushlight::python
