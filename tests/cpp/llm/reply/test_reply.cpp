// Replies: the same parts for any cut of a text into pieces, and nothing lost, for damaged texts.
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/llm/reply/reply.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::llm;

namespace {

const std::vector<std::string> kParts = {
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\"}}",
    "{\"name\": \"g\", ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\n",
    " ",
    "text",
    "f.call(a=1)",
    "```json\n",
    "```",
    "```tool_code\n",
    ";",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<|tool_call|>",
    "<|/tool_call|>",
    "é",
    "\xFF"};

struct Taken {
  ReplyPart part;

  void add(const ReplyPart& more) {
    part.content += more.content;
    part.reasoning += more.reasoning;
    part.calls.insert(part.calls.end(), more.calls.begin(), more.calls.end());
  }
};

StringView view(const std::string& text) { return {text.data(), text.size()}; }

ReplyPart take(const ReplyFormat& format, const std::string& text, size_t most,
               std::mt19937& random) {
  ReplyParser parser(format, {});
  Taken taken;
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::min<size_t>(1 + random() % most, text.size() - at);
    ReplyPart part;
    parser.push({text.data() + at, size}, &part);
    taken.add(part);
    at += size;
  }
  ReplyPart rest;
  parser.finish(&rest);
  taken.add(rest);
  return taken.part;
}

bool same(const ReplyPart& a, const ReplyPart& b) {
  if (a.content != b.content || a.reasoning != b.reasoning || a.calls.size() != b.calls.size()) {
    return false;
  }
  for (size_t i = 0; i < a.calls.size(); ++i) {
    if (a.calls[i].name != b.calls[i].name || a.calls[i].arguments != b.calls[i].arguments) {
      return false;
    }
  }
  return true;
}

void test_any_pieces() {
  std::mt19937 random(test::seed_for(1));
  size_t calls = 0;
  for (int round = 0; round < 20000; ++round) {
    const ReplyFormat& format = reply_formats()[random() % reply_formats().size()];
    std::string text;
    for (unsigned i = 0, n = random() % 9; i < n; ++i) text += kParts[random() % kParts.size()];
    const ReplyPart whole = take(format, text, text.size() + 1, random);
    for (const size_t most : {size_t{1}, size_t{8}}) {
      const bool equal = same(whole, take(format, text, most, random));
      if (!equal) std::fprintf(stderr, "%s: %s\n", format.name, text.c_str());
      CHECK(equal);
    }
    calls += whole.calls.size();
  }
  CHECK(calls > 100);
}

void test_interface() {
  CHECK(find_reply_format("hermes") != nullptr && find_reply_format("x") == nullptr);
  CHECK(reply_format_of("… <tool_call> …").name == std::string("hermes"));
  CHECK(reply_format_of("").name == std::string("json"));
  CHECK(opens_reasoning("a<think>\n") && !opens_reasoning("<think>a"));
  ReplyParser parser(*find_reply_format("hermes"), {});
  ReplyPart part;
  parser.push("say <tool", &part);
  CHECK(part.content == "say" && part.calls.empty());
  parser.push("_call>{\"name\": \"f\", \"arguments\": {}}", &part);
  CHECK(part.calls.size() == 1 && part.calls[0].arguments == "{}");
  parser.push(view("</tool_call>"), &part);
  parser.finish(&part);
  CHECK(part.content == "say");
}

}  // namespace

int main() {
  test_interface();
  test_any_pieces();
  return test::check_result();
}
