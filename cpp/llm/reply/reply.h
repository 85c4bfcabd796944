// Takes a reply apart while it is generated: what the model says, its reasoning, and its calls of
// tools.
//
// Text that may yet become a marker is held back until it is decided. What looks like a call and is
// none is content, so that nothing is lost. The text is what the tokens stand for, special ones
// included, up to the one that ends the reply.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rushlight/core/span.h"
#include "rushlight/llm/json/value.h"
#include "rushlight/llm/reply/format.h"

namespace rushlight::llm {

struct ToolCall {
  std::string id;  // "" if the model wrote none
  std::string name;
  std::string arguments;  // a JSON object
};

// What one piece of text added.
struct ReplyPart {
  std::string content;
  std::string reasoning;
  std::vector<ToolCall> calls;
};

struct ReplyOptions {
  bool takes_calls = true;      // else the text of a call is content
  bool takes_reasoning = true;  // else that of reasoning
  bool in_reasoning = false;    // the prompt opened it (opens_reasoning)
};

// The calls in a JSON value; false if it is none.
bool read_calls(const JsonValue& value, std::vector<ToolCall>* calls);
// `name.call(key="value")`, or Python, which becomes a call of "python".
ToolCall read_code(StringView code);

class ReplyParser {
 public:
  ReplyParser(const ReplyFormat& format, const ReplyOptions& options);

  // Adds to `part` what is known from this text on.
  void push(StringView text, ReplyPart* part);
  // The reply is at its end.
  void finish(ReplyPart* part);

 private:
  enum class State : unsigned char { Content, Reasoning, Call, Closing, Bare };

  // Finds the end of a JSON value without reading a byte twice.
  struct Scan {
    size_t at = 0;
    size_t depth = 0;
    bool in_string = false;
    bool escaped = false;
    bool started = false;
  };

  bool advance(bool at_end, ReplyPart* part);
  bool in_content(bool at_end, ReplyPart* part);
  bool in_reasoning(bool at_end, ReplyPart* part);
  bool in_call(bool at_end, ReplyPart* part);
  bool in_closing(bool at_end, ReplyPart* part);
  bool in_bare(bool at_end, ReplyPart* part);
  bool scan_json();
  bool read_body(std::vector<ToolCall>* calls) const;
  void enter(State state, size_t consumed);
  void say(const std::string& text, ReplyPart* part);
  void think(const std::string& text, ReplyPart* part);
  void add_calls(std::vector<ToolCall> calls, ReplyPart* part);
  bool give_up(ReplyPart* part);

  const ReplyFormat& format_;
  ReplyOptions options_;
  State state_ = State::Content;
  std::string pending_;  // of the current state; what was consumed is gone
  Scan scan_;
  std::string spaces_;         // white space that counts only if text follows
  bool drops_spaces_ = false;  // before the text that follows
  bool has_text_ = false;      // content was said
  bool has_calls_ = false;
};

}  // namespace rushlight::llm
