#include "rushlight/llm/grammar/tools.h"

#include <cstring>
#include <utility>
#include <vector>

#include "rushlight/llm/grammar/automaton/lexeme.h"
#include "rushlight/llm/grammar/reasoning.h"
#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/json/write.h"
#include "rushlight/llm/memory/guard.h"
#include "rushlight/llm/reply/format.h"

namespace rushlight::llm {
namespace {

using grammar::Automaton;
using grammar::Dfa;
using WhiteSpace = GrammarOptions::WhiteSpace;

using Families = std::vector<std::pair<std::string, ToolFormat>>;

// What the parser of replies reads, as it is written.
Families read_families() {
  Families families;
  for (const ReplyFormat& format : reply_formats()) {
    const CallWriting& writing = format.writing;
    ToolFormat made;
    if (!format.takes_bare_json) {
      made.begin = format.call.begin + std::string(writing.space);
      made.end = writing.space + std::string(format.call.end);
    }
    made.separator = writing.separator;
    made.is_list = writing.is_list;
    made.arguments = writing.arguments;
    for (const char* name : writing.families) {
      if (name != nullptr) families.emplace_back(name, made);
    }
  }
  return families;
}

class ToolCompiler {
 public:
  ToolCompiler(bool parallel, const ToolFormat& format, const Vocabulary& vocabulary,
               WhiteSpace white_space, Message* message)
      : parallel_(parallel),
        format_(format),
        vocabulary_(vocabulary),
        white_space_(white_space),
        message_(message) {}

  Status compile(const JsonValue& tools, const JsonValue& choice);
  Automaton automaton;
  grammar::Budget budget;  // for all tools together

 private:
  Status read_choice(const JsonValue& choice);
  Status add_tools(const JsonValue& tools, uint32_t from, uint32_t to);
  Status add_tool(const JsonValue& function, uint32_t from, uint32_t to);
  Status add_text(bool with_calls, uint32_t from, uint32_t to);
  uint32_t after(uint32_t from, const std::string& text, bool with_space);
  void add_space(uint32_t state);
  void jump(uint32_t from, uint32_t to) { automaton.states[from].jumps.push_back({to, false}); }
  std::string marked(const std::string& text) const;

  const bool parallel_;
  const ToolFormat& format_;
  const Vocabulary& vocabulary_;
  const WhiteSpace white_space_;
  Message* message_;
  std::string choice_, chosen_;  // "none", "auto", "required"; the tool that is asked for
};

// Puts special tokens where a marker names them, the longest names first.
std::string ToolCompiler::marked(const std::string& text) const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t size = text.size() - at;
    int32_t token = vocabulary_.special({text.data() + at, size});
    while (token < 0 && --size > 0) token = vocabulary_.special({text.data() + at, size});
    out += token >= 0 ? Vocabulary::marked(token) : text.substr(at, 1);
    at += token >= 0 ? size : 1;
  }
  return out;
}

uint32_t ToolCompiler::after(uint32_t from, const std::string& text, bool with_space) {
  const uint32_t state = automaton.add_state(automaton.states[from].rule);
  automaton.add_text(from, text, state);
  if (with_space) add_space(state);
  return state;
}

void ToolCompiler::add_space(uint32_t state) {
  if (white_space_ == WhiteSpace::Flexible) grammar::add_white_space(state, &automaton);
}

Status ToolCompiler::read_choice(const JsonValue& choice) {
  choice_ = choice.is_string() ? choice.string() : "required";
  if (choice.is_string() && (choice_ == "none" || choice_ == "auto" || choice_ == "required")) {
    return Code::Ok;
  }
  const JsonValue* function = choice.find("function");
  const JsonValue* name = function == nullptr ? nullptr : function->find("name");
  if (name == nullptr || !name->is_string()) {
    return message_->fail(Code::InvalidArgument,
                          "'tool_choice' must be none, auto, required, or {\"type\": \"function\", "
                          "\"function\": {\"name\": ...}}");
  }
  chosen_ = name->string();
  return Code::Ok;
}

// {"name": ..., "arguments": ...} with the tool's own schema.
Status ToolCompiler::add_tool(const JsonValue& function, uint32_t from, uint32_t to) {
  const bool spaced = white_space_ == WhiteSpace::Spaced;
  const char *colon = spaced ? ": " : ":", *comma = spaced ? ", " : ",";
  std::string texts[3];
  write_json_string({format_.name.data(), format_.name.size()}, false, &texts[0]);
  const std::string& name = function.find("name")->string();
  write_json_string({name.data(), name.size()}, false, &texts[1]);
  write_json_string({format_.arguments.data(), format_.arguments.size()}, false, &texts[2]);
  uint32_t at = after(from, "{", true);
  at = after(after(at, texts[0], true), colon, true);
  at = after(after(at, texts[1], true), comma, true);
  at = after(after(at, texts[2], true), colon, true);
  const JsonValue* parameters = function.find("parameters");
  const JsonValue none = JsonValue::object(
      {{"type", JsonValue("object")}, {"additionalProperties", JsonValue(false)}});
  Automaton arguments;
  grammar::SchemaCompiler compiler(parameters == nullptr ? none : *parameters, white_space_,
                                   &arguments, &budget, message_);
  const Status status = compiler.compile();
  if (!status.ok()) message_->prepend("the tool '%s': ", grammar::shown(name, 100).c_str());
  RL_TRY(status);
  const uint32_t read = automaton.add_state(automaton.states[at].rule);
  add_space(read);
  const uint32_t rule = automaton.append(arguments);
  RL_TRY(check_size(automaton, "the tools up to '" + grammar::shown(name, 100) + "'", message_));
  automaton.states[at].calls.push_back({rule, read});
  automaton.add_text(read, "}", to);
  return Code::Ok;
}

Status ToolCompiler::add_tools(const JsonValue& tools, uint32_t from, uint32_t to) {
  bool any = false;
  for (const JsonValue& tool : tools.items()) {
    const JsonValue* function = tool.find("function");
    const JsonValue* name = function == nullptr ? nullptr : function->find("name");
    if (name == nullptr || !name->is_string()) {
      return message_->fail(Code::InvalidArgument,
                            "each of 'tools' must be {\"type\": \"function\", \"function\": "
                            "{\"name\": ..., \"parameters\": {...}}}");
    }
    if (!chosen_.empty() && name->string() != chosen_) continue;
    RL_TRY(add_tool(*function, from, to));
    any = true;
  }
  if (any) return Code::Ok;
  return message_->fail(
      Code::InvalidArgument, "'tool_choice' asks for %s%s, which is not in 'tools'",
      chosen_.empty() ? "a tool" : "the tool ", grammar::shown(chosen_, 100).c_str());
}

// Text, which does not have the marker of a call.
Status ToolCompiler::add_text(bool with_calls, uint32_t from, uint32_t to) {
  std::string begin = marked(format_.begin);
  while (!begin.empty() && std::strchr(" \n\r\t", begin.back()) != nullptr) begin.pop_back();
  Result<Dfa> texts = grammar::any_text();
  if (with_calls && begin.empty()) {
    texts = dfa_from("(?:[^\\s{\\[][\\s\\S]*)?", grammar::Match::Whole, &budget, message_);
  } else if (!begin.empty() && begin[0] != Vocabulary::kMark) {
    texts = grammar::text_without({begin.data(), begin.size()}, &budget, message_);
  }
  if (!texts.ok()) return texts.status();
  grammar::Lexeme lexeme;
  lexeme.characters = std::move(*texts);
  uint32_t rule = 0;
  RL_TRY(add_lexeme(std::move(lexeme), "text beside tools", &automaton, &rule, &budget, message_));
  automaton.states[from].calls.push_back({rule, to});
  return Code::Ok;
}

Status ToolCompiler::compile(const JsonValue& tools, const JsonValue& choice) {
  RL_TRY(read_choice(choice));
  const uint32_t root = automaton.add_rule("tools");
  const uint32_t start = automaton.rules[root].start, end = automaton.add_state(root);
  automaton.states[end].accepts = true;
  uint32_t calls = start;
  if (choice_ == "none" || choice_ == "auto") {
    RL_TRY(add_text(choice_ == "auto", start, end));
    calls = automaton.add_state(root);
    // Text before calls; where they have no marker, calls stand alone.
    if (choice_ == "auto" && !format_.begin.empty()) RL_TRY(add_text(true, start, calls));
    jump(start, calls);
  }
  if (choice_ != "none") {
    const std::string begin = marked(format_.begin), close = marked(format_.end);
    uint32_t from = after(calls, begin, false);
    if (format_.is_list) from = after(from, "[", true);
    const uint32_t called = automaton.add_state(root);
    RL_TRY(add_tools(tools, from, called));
    const uint32_t done = after(called, format_.is_list ? "]" + close : close, false);
    jump(done, end);
    if (parallel_ && format_.is_list) {
      jump(after(called, white_space_ == WhiteSpace::Spaced ? ", " : ",", true), from);
    } else if (parallel_) {
      automaton.add_text(done, marked(format_.separator) + begin, from);
    }
  }
  automaton.root = root;
  RL_TRY(check_size(automaton, "the tools", message_));
  return prune(&automaton, &budget, message_).status();
}

}  // namespace

const ToolFormat* tool_format(StringView family) {
  static const Families families = read_families();
  for (const auto& [name, format] : families) {
    if (family == StringView(name.data(), name.size())) return &format;
  }
  return nullptr;
}

Result<std::shared_ptr<const Grammar>> grammar_from_tools(
    const JsonValue& tools, const JsonValue& choice, bool parallel, const ToolFormat& format,
    std::shared_ptr<const Vocabulary> vocabulary, const GrammarOptions& options, Message* message) {
  if (!tools.is_array()) {
    return message->fail(Code::InvalidArgument, "'tools' must be a list of functions, got %s",
                         kind_name(tools.kind()));
  }
  return guard("compile the tools", message, [&]() -> Result<std::shared_ptr<const Grammar>> {
    ToolCompiler compiler(parallel, format, *vocabulary, options.white_space, message);
    RL_TRY(compiler.compile(tools, choice));
    RL_TRY(add_reasoning(options.reasoning, *vocabulary, &compiler.automaton, &compiler.budget,
                         message));
    return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(
        std::move(compiler.automaton), std::move(vocabulary), options.cache_bytes));
  });
}

}  // namespace rushlight::llm
