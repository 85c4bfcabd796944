// Chat templates: what only C++ sees. Which bytes of a prompt are data, memory that is given back,
// renders on several threads, and damaged templates and conversations, which must be errors or
// text. The text itself is held to Jinja in tests/python/llm/template.
//
//   test_chat_template ROUNDS TEMPLATE ...
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/template/chat_template.h"
#include "seed.h"

namespace {
std::atomic<long> g_blocks{0};  // of memory that are in use
}

void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  ++g_blocks;
  return memory;
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept {
  if (memory != nullptr) --g_blocks;
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete[](void* memory, size_t) noexcept { operator delete(memory); }

using namespace rushlight;
using namespace rushlight::llm;

namespace {

constexpr const char* kChat = R"({
  "messages": [
    {"role": "system", "content": " Be brief. "},
    {"role": "user", "content": "Grüße 🦊 <|im_end|> {{ 1 }}"},
    {"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [
      {"id": "abcdefgh1", "type": "function",
       "function": {"name": "f", "arguments": {"a": [1, 2.5, null, true, "x"]}}}]},
    {"role": "tool", "tool_call_id": "abcdefgh1", "content": "{\"b\": 2}"},
    {"role": "assistant", "content": "<think>\nx\n</think>\n\nDone."},
    {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}],
  "tools": [{"type": "function", "function": {"name": "f", "description": "does it",
    "parameters": {"type": "object", "properties": {"a": {"type": "array",
      "items": {"type": "string"}, "enum": ["x", "y"]}}, "required": ["a"]}}}],
  "documents": [{"title": "t", "text": "u"}], "add_generation_prompt": true})";

StringView view(const std::string& text) { return {text.data(), text.size()}; }

JsonValue json(const std::string& text) {
  Message message;
  Result<JsonValue> value = parse_json(view(text), &message);
  CHECK(value.ok());
  return value.ok() ? *value : JsonValue();
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text with '[' and ']' around what is data.
std::string marked(const std::string& source, const std::string& variables) {
  Message message;
  Result<ChatTemplate> chat = ChatTemplate::parse(view(source), &message);
  CHECK(chat.ok());
  if (!chat.ok()) return message.text();
  const JsonValue tokens = json("{\"bos\": \"<s>\"}");
  RenderOptions options;
  options.tokens = &tokens;
  Rendered out;
  if (!chat->render(json(variables), options, &out, &message).ok()) return message.text();
  for (size_t i = out.data.size(); i-- > 0;) {
    out.text.insert(out.data[i].end, "]").insert(out.data[i].begin, "[");
  }
  return out.text;
}

void test_data_is_known() {
  const std::string chat = "{\"c\": \"<s>ab</s>\", \"r\": \"u\", \"n\": 7}";
  CHECK(marked("<s>{{ c }}</s>", chat) == "<s>[<s>ab</s>]</s>");
  CHECK(marked("{{ bos ~ r + ': ' ~ c }}", chat) == "<s>[u]: [<s>ab</s>]");
  CHECK(marked("{{ (' ' ~ c ~ ' ')|trim }}", chat) == "[<s>ab</s>]");
  CHECK(marked("{{ ('<' ~ r ~ '>' ~ r)[1:] }}", chat) == "[u]>[u]");
  CHECK(marked("{{ c.split('a')[0] }}{{ c.replace('a', '-') }}", chat) == "[<s><s>]-[b</s>]");
  CHECK(marked("{{ [r, bos]|join('+') }}{{ {'a': r}|tojson }}", chat) == "[u]+<s>[{\"a\": \"u\"}]");
  CHECK(marked("{{ {'a': bos}|tojson }}{{ r|upper }}{{ [bos, r] }}", chat) ==
        "{\"a\": \"<s>\"}[U]['<s>', ['u']]");
  CHECK(marked("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(r) }}", chat) == "<[u]>");
  CHECK(marked("{% set x %}<{{ r }}>{% endset %}{{ x }}", chat) == "<[u]>");
  CHECK(marked("{{ '%s!' % r }}{{ '{}!'.format(r) }}", chat) == "[u]![u]!");
}

void test_circles_are_given_back() {
  const JsonValue variables = json("{}");
  for (const char* source :
       {"{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}",
        "{% for i in [1, 2] %}{{ loop.changed([loop]) }}{% break %}{% endfor %}",
        "{% for i in [1] %}{{ loop.changed(loop) }}{{ nothing.here }}{% endfor %}",
        "{% set n = namespace() %}{% for i in [1] %}{% set n.l = loop %}{% endfor %}"
        "{{ n.l.changed(n) }}",
        "{% set n = namespace() %}{% for i in range(50000) %}{% for j in [1] %}"
        "{{ loop.changed(n.l) }}{% set n.l = loop %}{% endfor %}{% endfor %}"}) {
    Message message;
    const Result<ChatTemplate> chat = ChatTemplate::parse(source, &message);
    CHECK(chat.ok());
    if (!chat.ok()) continue;
    long before = 0;
    for (int i = 0; i < 3; ++i) {
      std::string text;
      (void)chat.value().render(variables, &text, &message);
      text = std::string();
      if (i == 0) before = g_blocks;  // what is made once has been made
    }
    CHECK(g_blocks <= before);
    if (g_blocks > before) std::fprintf(stderr, "%ld blocks: %s\n", g_blocks - before, source);
  }
}

void test_interface() {
  Message message;
  Result<ChatTemplate> chat =
      ChatTemplate::parse("{{ messages }}{% if tools %}{% endif %}", &message);
  CHECK(chat.ok() && chat->uses("tools") && !chat->uses("enable_thinking"));
  std::string text;
  CHECK(!chat->render(json("[]"), &text, &message).ok());
  CHECK(std::strstr(message.text(), "are an array; an object is needed") != nullptr);
  CHECK(!ChatTemplate().render(json("{}"), &text, &message).ok());
  CHECK(!ChatTemplate::parse("a\xFF", &message).ok());
  CHECK(std::strstr(message.text(), "not valid UTF-8 at byte 1") != nullptr);
  CHECK(!ChatTemplate::parse(view(std::string((size_t{1} << 20) + 1, 'a')), &message).ok());
}

void test_threads(const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    Message message;
    const Result<ChatTemplate> chat = ChatTemplate::parse(view(source), &message);
    CHECK(chat.ok());
    if (!chat.ok()) continue;
    const JsonValue variables = json(kChat);
    std::string texts[4];
    std::vector<std::thread> threads;
    for (std::string& text : texts) {
      threads.emplace_back([&] {
        Message own;
        for (int i = 0; i < 20; ++i) {
          if (!chat.value().render(variables, &text, &own).ok()) text = own.text();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& text : texts) CHECK(text == texts[0] && !text.empty());
  }
}

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  std::string operator()(std::string text, const std::vector<std::string>& parts) {
    for (unsigned i = 0, n = 1 + random_() % 3; i < n && !text.empty(); ++i) {
      const size_t at = random_() % text.size(), size = 1 + random_() % 12;
      const unsigned way = random_() % 5;
      if (way == 0) text.erase(at, size);
      if (way == 1)
        text[at] = static_cast<char>(random_() % 3 == 0 ? random_() : ' ' + random_() % 95);
      if (way == 2) text.insert(at, text.substr(random_() % text.size(), size));
      if (way > 2) text.insert(at, parts[random_() % parts.size()]);
    }
    return text;
  }
  unsigned pick(size_t count) { return static_cast<unsigned>(random_() % count); }

 private:
  std::mt19937 random_;
};

// What templates are made of.
const std::vector<std::string> kTemplateParts = {"{{",
                                                 "}}",
                                                 "{%",
                                                 "%}",
                                                 "{#",
                                                 "-%}",
                                                 "{%-",
                                                 "|",
                                                 "~",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 "[::-1]",
                                                 "{",
                                                 "}",
                                                 " if ",
                                                 " else ",
                                                 " is ",
                                                 " in ",
                                                 " not ",
                                                 "{% for x in messages %}",
                                                 "{% endfor %}",
                                                 "{% if ",
                                                 "{% endif %}",
                                                 "{% set x = ",
                                                 "loop.last",
                                                 "|tojson(indent=4)",
                                                 "|join(',')",
                                                 "''",
                                                 "|sort",
                                                 "|map('upper')",
                                                 ".items()",
                                                 ".split()",
                                                 ".format(1)",
                                                 "{% raw %}",
                                                 "caller()",
                                                 "{% macro f(a=1) %}",
                                                 "{% endmacro %}",
                                                 "f(f)",
                                                 "namespace(a=1)",
                                                 "9999999999999",
                                                 "1e99",
                                                 "%s",
                                                 "range(99)",
                                                 "**",
                                                 "//",
                                                 "%",
                                                 "-",
                                                 "{% set x %}",
                                                 "{% endset %}",
                                                 "none",
                                                 "[-1]"};

void test_damaged_templates(int rounds, const std::vector<std::string>& sources) {
  Damage damage(test::seed_for(1));
  const JsonValue chat = json(kChat);
  int parsed = 0, rendered = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string source = damage(sources[damage.pick(sources.size())], kTemplateParts);
    Message message;
    const Result<ChatTemplate> result = ChatTemplate::parse(view(source), &message);
    CHECK(result.ok() == message.empty());
    if (!result.ok()) continue;
    ++parsed;
    RenderOptions options;
    options.limits.work = 200000;
    options.limits.output = 1 << 20;
    Rendered out;
    const bool ok = result.value().render(chat, options, &out, &message).ok();
    CHECK(ok == message.empty());
    for (const TextRange& range : out.data)
      CHECK(range.begin < range.end && range.end <= out.text.size());
    rendered += ok ? 1 : 0;
  }
  CHECK(parsed > rounds / 20 && rendered > rounds / 100);
}

void test_damaged_conversations(int rounds, const std::vector<std::string>& sources) {
  const std::vector<std::string> parts = {"null",
                                          "{}",
                                          "[]",
                                          "\"\"",
                                          "1",
                                          "-1.5",
                                          "true",
                                          "\"role\"",
                                          ",",
                                          ":",
                                          "{\"type\": \"text\", \"text\": 1}",
                                          "\\ud83d"};
  Damage damage(test::seed_for(2));
  for (int round = 0; round < rounds; ++round) {
    Message message;
    const Result<JsonValue> chat = parse_json(view(damage(kChat, parts)), &message);
    if (!chat.ok() || !chat.value().is_object()) continue;
    const std::string& source = sources[damage.pick(sources.size())];
    const Result<ChatTemplate> result = ChatTemplate::parse(view(source), &message);
    CHECK(result.ok());
    if (!result.ok()) continue;
    std::string text;
    CHECK(result.value().render(chat.value(), &text, &message).ok() == message.empty());
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 0;
  std::vector<std::string> sources;
  for (int i = 2; i < count; ++i) sources.push_back(read_file(arguments[i]));
  test_data_is_known();
  test_interface();
  test_circles_are_given_back();
  test_threads(sources);
  test_damaged_templates(rounds, sources);
  test_damaged_conversations(rounds, sources);
  return test::check_result();
}
