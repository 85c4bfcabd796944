#include "rushlight/llm/reply/reply.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "rushlight/llm/json/parse.h"
#include "rushlight/llm/json/write.h"

namespace rushlight::llm {
namespace {

constexpr const char* kSpaces = " \t\r\n";

// How much of the end of `text` is the beginning of a marker.
size_t held_back(const std::string& text, std::initializer_list<const char*> markers) {
  size_t most = 0;
  for (const char* marker : markers) {
    const size_t size = std::strlen(marker);
    for (size_t n = std::min(size > 0 ? size - 1 : 0, text.size()); n > most; --n) {
      if (text.compare(text.size() - n, n, marker, n) == 0) most = n;
    }
  }
  return most;
}

// The first place of a marker, and which it is; npos if there is none.
size_t find_first(const std::string& text, std::initializer_list<const char*> markers,
                  const char** marker) {
  size_t first = std::string::npos;
  for (const char* one : markers) {
    if (*one == '\0') continue;
    const size_t place = text.find(one);
    if (place >= first) continue;
    first = place;
    *marker = one;
  }
  return first;
}

bool starts_with(const std::string& text, const std::string& part) {
  return text.compare(0, part.size(), part) == 0;
}

std::string without(std::string text, const std::string& part) {
  const size_t place = text.find(part);
  return place == std::string::npos ? text : text.erase(place, part.size());
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// What stands before the arguments of a call: the name, around which may stand the type of the
// call, a separator, and the mark of a block of code.
std::string name_of(const std::string& head, const std::string& separator) {
  const size_t place = head.find(separator);
  if (separator.empty() || place == std::string::npos) return trimmed(without(head, "```json"));
  const std::string after = trimmed(without(head.substr(place + separator.size()), "```json"));
  return after.empty() ? trimmed(head.substr(0, place)) : after;
}

}  // namespace

ReplyParser::ReplyParser(const ReplyFormat& format, const ReplyOptions& options)
    : format_(format), options_(options) {
  if (options.takes_reasoning && options.in_reasoning) enter(State::Reasoning, 0);
}

void ReplyParser::push(StringView text, ReplyPart* part) {
  pending_.append(text.data(), text.size());
  while (advance(false, part)) {
  }
}

void ReplyParser::finish(ReplyPart* part) {
  while (advance(true, part)) {
  }
  if (!has_calls_ && state_ == State::Content) part->content += spaces_;
  spaces_.clear();
}

bool ReplyParser::advance(bool at_end, ReplyPart* part) {
  switch (state_) {
    case State::Content:
      return in_content(at_end, part);
    case State::Reasoning:
      return in_reasoning(at_end, part);
    case State::Call:
      return in_call(at_end, part);
    case State::Closing:
      return in_closing(at_end, part);
    case State::Bare:
      return in_bare(at_end, part);
  }
  return false;
}

// Begins a state with what is left after `consumed` bytes.
void ReplyParser::enter(State state, size_t consumed) {
  pending_.erase(0, consumed);
  state_ = state;
  scan_ = Scan();
  if (state == State::Reasoning) {
    spaces_.clear();
    drops_spaces_ = true;
  }
}

void ReplyParser::say(const std::string& text, ReplyPart* part) {
  const size_t begin = drops_spaces_ ? text.find_first_not_of(kSpaces) : 0;
  const size_t last = text.find_last_not_of(kSpaces);
  if (begin == std::string::npos || last == std::string::npos) {
    if (!drops_spaces_) spaces_ += text;
    return;
  }
  part->content += std::exchange(spaces_, "") + text.substr(begin, last + 1 - begin);
  spaces_ = text.substr(last + 1);
  drops_spaces_ = false;
  has_text_ = true;
}

void ReplyParser::think(const std::string& text, ReplyPart* part) {
  ReplyPart said;
  const bool before = has_text_;
  say(text, &said);
  part->reasoning += said.content;
  has_text_ = before;
}

void ReplyParser::add_calls(std::vector<ToolCall> calls, ReplyPart* part) {
  for (ToolCall& call : calls) part->calls.push_back(std::move(call));
  has_calls_ = true;
  spaces_.clear();
  drops_spaces_ = true;
}

bool ReplyParser::in_content(bool at_end, ReplyPart* part) {
  const Markers none = {"", ""};
  const char* const thinks = options_.takes_reasoning ? format_.reasoning.begin : "";
  const char* const calls = options_.takes_calls ? format_.call.begin : "";
  const Markers around = options_.takes_calls ? format_.around : none;
  const Markers answer = format_.answer;
  const auto markers = {thinks, calls, around.begin, around.end, answer.begin, answer.end};
  if (options_.takes_calls && format_.takes_bare_json && !has_text_) {
    // Calls that follow each other may have ';' between them.
    const size_t begin = pending_.find_first_not_of(has_calls_ ? " \t\r\n;" : kSpaces);
    if (begin == std::string::npos && has_calls_ && !at_end) return false;
    if (begin != std::string::npos && pending_[begin] == '{') {
      if (!drops_spaces_ || has_calls_) spaces_ += pending_.substr(0, begin);
      enter(State::Bare, begin);
      return true;
    }
  }
  const char* marker = nullptr;
  const size_t place = find_first(pending_, markers, &marker);
  if (place == std::string::npos) {
    const size_t kept = at_end ? 0 : held_back(pending_, markers);
    const std::string text = pending_.substr(0, pending_.size() - kept);
    pending_.erase(0, text.size());
    say(text, part);
    return false;
  }
  say(pending_.substr(0, place), part);
  if (marker == thinks && has_text_) {
    say(marker, part);  // reasoning comes first: what follows only speaks of it
    enter(State::Content, place + std::strlen(marker));
  } else if (marker == thinks) {
    enter(State::Reasoning, place + std::strlen(marker));
  } else if (marker == calls) {
    enter(State::Call, place);
  } else {
    enter(State::Content, place + std::strlen(marker));
  }
  return true;
}

bool ReplyParser::in_reasoning(bool at_end, ReplyPart* part) {
  const char* const end = format_.reasoning.end;
  const size_t place = pending_.find(end);
  if (place != std::string::npos) {
    think(pending_.substr(0, place), part);
    spaces_.clear();
    drops_spaces_ = true;
    enter(State::Content, place + std::strlen(end));
    return true;
  }
  const size_t kept = at_end ? 0 : held_back(pending_, {end});
  const std::string text = pending_.substr(0, pending_.size() - kept);
  pending_.erase(0, text.size());
  think(text, part);
  return false;
}

// Walks to the end of the JSON value that begins at or after scan_.at; false if it is not there
// yet.
bool ReplyParser::scan_json() {
  for (; scan_.at < pending_.size(); ++scan_.at) {
    const char c = pending_[scan_.at];
    if (scan_.in_string) {
      if (scan_.escaped) {
        scan_.escaped = false;
      } else if (c == '\\') {
        scan_.escaped = true;
      } else if (c == '"') {
        scan_.in_string = false;
      }
    } else if (c == '"' && scan_.started) {
      scan_.in_string = true;
    } else if (c == '{' || c == '[') {
      scan_.started = true;
      ++scan_.depth;
    } else if ((c == '}' || c == ']') && scan_.started && --scan_.depth == 0) {
      ++scan_.at;
      return true;
    }
  }
  return false;
}

// The calls in pending_, up to scan_.at; false if there are none.
bool ReplyParser::read_body(std::vector<ToolCall>* calls) const {
  const CallSyntax& syntax = format_.call;
  const size_t start = state_ == State::Bare ? 0 : std::strlen(syntax.begin);
  const size_t open = pending_.find_first_of("{[", start);
  const bool is_named = syntax.body == CallBody::Named && state_ == State::Call;
  const size_t object = is_named ? pending_.find('{', start) : open;
  const std::string before = pending_.substr(start, open - start);
  const bool has_name = is_named && !trimmed(before).empty();
  const size_t begin = has_name ? object : open;
  if (begin == std::string::npos || begin >= scan_.at) return false;
  Message message;
  const Result<JsonValue> value = parse_json({pending_.data() + begin, scan_.at - begin}, &message);
  if (!value.ok()) return false;
  if (!has_name) return read_calls(value.value(), calls);
  std::string name = name_of(pending_.substr(start, begin - start), syntax.separator), id;
  const size_t mark = *syntax.id == '\0' ? std::string::npos : name.find(syntax.id);
  if (mark != std::string::npos) {
    id = trimmed(name.substr(mark + std::strlen(syntax.id)));
    name = trimmed(name.substr(0, mark));
  }
  if (!value.value().is_object() || name.empty()) return false;
  calls->push_back({id, name, write_json(value.value())});
  return true;
}

// What began as a call is content.
bool ReplyParser::give_up(ReplyPart* part) {
  const size_t marker = state_ == State::Bare ? 1 : std::strlen(format_.call.begin);
  const std::string text = pending_.substr(0, marker);
  enter(State::Content, marker);
  say(text, part);
  has_text_ = true;
  return true;
}

bool ReplyParser::in_call(bool at_end, ReplyPart* part) {
  const CallSyntax& syntax = format_.call;
  const size_t start = std::strlen(syntax.begin);
  if (scan_.at < start) scan_.at = start;
  const size_t first = pending_.find_first_not_of(kSpaces, start);
  if (first == std::string::npos) return at_end && give_up(part);
  const bool is_json = pending_[first] == '{' || pending_[first] == '[';
  if (syntax.body == CallBody::Json && !is_json) return give_up(part);
  if (syntax.body == CallBody::Code && !is_json) {
    const size_t close = *syntax.end == '\0' ? std::string::npos : pending_.find(syntax.end, start);
    if (close == std::string::npos && !at_end) return false;
    const size_t stop = std::min(close, pending_.size());
    add_calls({read_code({pending_.data() + start, stop - start})}, part);
    enter(State::Content, std::min(stop + std::strlen(syntax.end), pending_.size()));
    return true;
  }
  // A separator such as "[ARGS]" has brackets of its own: the arguments begin after it.
  if (syntax.body == CallBody::Named && !is_json && !scan_.started) {
    const size_t object = pending_.find('{', start);
    if (object == std::string::npos) return at_end && give_up(part);
    scan_.at = object;
  }
  if (!scan_json()) return at_end && give_up(part);
  std::vector<ToolCall> calls;
  if (!read_body(&calls)) return give_up(part);
  const size_t end = scan_.at;
  add_calls(std::move(calls), part);
  enter(*syntax.end == '\0' ? State::Content : State::Closing, end);
  return true;
}

// White space, the end of a block of code, and the marker at the end of a call.
bool ReplyParser::in_closing(bool at_end, ReplyPart* part) {
  (void)part;
  size_t at = pending_.find_first_not_of(kSpaces);
  if (at == std::string::npos) at = pending_.size();
  const std::string end = format_.call.end, fence = "```";
  const std::string rest = pending_.substr(at);
  if (rest.size() < fence.size() && starts_with(fence, rest) && !at_end) return false;
  if (starts_with(rest, fence) && end != fence) {
    enter(State::Closing, at + fence.size());
    return true;
  }
  if (rest.size() < end.size() && starts_with(end, rest) && !at_end) return false;
  enter(State::Content, starts_with(rest, end) ? at + end.size() : at);
  return true;
}

bool ReplyParser::in_bare(bool at_end, ReplyPart* part) {
  if (!scan_json()) return at_end && give_up(part);
  std::vector<ToolCall> calls;
  if (!read_body(&calls)) return give_up(part);
  const size_t end = scan_.at;
  add_calls(std::move(calls), part);
  enter(State::Content, end);
  return true;
}

}  // namespace rushlight::llm
