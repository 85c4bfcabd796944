#include "rushlight/llm/runner/chat.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/reply/reply.h"

namespace rushlight::llm {
namespace {

// Whether any byte of [begin, end) came from messages. The ranges are in order.
bool has_data(const std::vector<TextRange>& data, size_t begin, size_t end) {
  return std::any_of(data.begin(), data.end(), [&](const TextRange& range) {
    return range.begin < end && range.end > begin;
  });
}

}  // namespace

Status Chat::open(StringView source, const JsonValue& tokens, const TextCodec* codec,
                  Message* message) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source, message);
  if (!parsed.ok()) return parsed.status();
  template_ = std::move(parsed.value());
  tokens_ = tokens.is_object() ? tokens : JsonValue::object();
  reply_format_ = &reply_format_of(source);
  reasons_ = std::string(source.data(), source.size()).find(kThink.begin) != std::string::npos;
  specials_.clear();
  for (size_t i = 0; i < codec->vocabulary(); ++i) {
    const auto token = static_cast<int32_t>(i);
    if (codec->is_special(token) && !codec->piece(token).empty()) {
      specials_.push_back(codec->piece(token));
    }
  }
  codec_ = codec;  // now it is open
  return {};
}

// A variable that the template does not read would be ignored.
Status Chat::check(const JsonValue& variables, Message* message) const {
  const std::vector<StringView> inputs = template_.inputs();
  for (const JsonMember& variable : variables.members()) {
    const StringView name(variable.key.data(), variable.key.size());
    const bool is_usual = name == "messages" || name == "add_generation_prompt";
    if (is_usual || variable.value.is_null()) continue;
    if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
    std::string list;
    for (const StringView input : inputs) {
      if (tokens_.find(input) != nullptr) continue;  // the text of a special token
      if (!list.empty()) list += ", ";
      list.append(input.data(), input.size());
    }
    return message->fail(Code::NotSupported,
                         "the model's chat template has no variable '%s': leave it out. It has %s",
                         variable.key.c_str(), list.c_str());
  }
  return {};
}

Status Chat::encode(const JsonValue& variables, std::vector<int32_t>* tokens,
                    Message* message) const {
  RL_TRY(check(variables, message));
  RenderOptions options;
  options.tokens = &tokens_;
  Rendered rendered;
  RL_TRY(template_.render(variables, options, &rendered, message));
  return encode_parts(rendered, tokens, message);
}

// The text is encoded as a whole, but for texts of special tokens in messages, which are encoded by
// themselves as what they are: text.
Status Chat::encode_parts(const Rendered& rendered, std::vector<int32_t>* tokens,
                          Message* message) const {
  const std::string& text = rendered.text;
  std::vector<TextRange> plain;
  for (const StringView special : specials_) {
    size_t at = text.find(special.data(), 0, special.size());
    for (; at != std::string::npos; at = text.find(special.data(), at + 1, special.size())) {
      const size_t end = at + special.size();
      if (has_data(rendered.data, at, end)) plain.push_back({at, end});
    }
  }
  std::sort(plain.begin(), plain.end(),
            [](const TextRange& a, const TextRange& b) { return a.begin < b.begin; });
  const auto add = [&](size_t begin, size_t end, bool parse_special) -> Status {
    if (begin >= end) return {};
    const StringView part(text.data() + begin, end - begin);
    return codec_->encode(part, false, parse_special, tokens, message);
  };
  size_t done = 0;
  for (size_t i = 0; i < plain.size();) {
    TextRange joined = plain[i++];
    for (; i < plain.size() && plain[i].begin < joined.end; ++i) {
      joined.end = std::max(joined.end, plain[i].end);
    }
    RL_TRY(add(done, joined.begin, true));
    RL_TRY(add(joined.begin, joined.end, false));
    done = joined.end;
  }
  return add(done, text.size(), true);
}

}  // namespace rushlight::llm
