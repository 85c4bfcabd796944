// How the models of a family write calls of tools into their replies: for the parser of replies,
// and for grammars that make a model write such calls.
#pragma once

#include <cstdint>

#include "rushlight/core/span.h"

namespace rushlight::llm {

enum class CallBody : uint8_t {
  Json,   // an object with a name and arguments, or an array of them
  Named,  // the name, then the arguments as an object
  Code,   // JSON, or code: `search.call(query="…")`, or Python
};

// One call, or a list of calls. Without `begin`, a reply is a call if it is nothing but JSON.
struct CallSyntax {
  const char* begin;
  const char* end;  // "" if nothing ends it but the text itself
  const char*
      separator;  // of Named: between what stands before the name, or after it, and the rest
  CallBody body;
  const char* id = "";  // of Named: between the name and an id
};

// The one way, of those that are read, in which a grammar has calls written: JSON objects between
// the markers, or without them where bare JSON is a call.
struct CallWriting {
  const char* families[3];  // of models; none if no grammar writes this format
  const char* space;        // between a marker and the object
  const char* separator;    // between calls
  bool is_list;             // all calls are one array between the markers
  const char* arguments;    // the key of the arguments
};

// Two markers; both are empty if there are none.
struct Markers {
  const char* begin;
  const char* end;
};

constexpr Markers kThink = {"<think>", "</think>"};

struct ReplyFormat {
  const char* name;
  const char* hints[2];  // texts by which a chat template shows that its model writes this
  CallSyntax call;
  Markers around;        // of all calls together, which are dropped
  bool takes_bare_json;  // a reply that begins with a JSON object may be a call as well
  CallWriting writing;
  Markers reasoning = kThink;
  Markers answer = {"", ""};  // of what the model says, which are dropped
};

// All formats; the last one is that of models without markers, which answer with JSON.
Span<const ReplyFormat> reply_formats();

// The format of this name; null if there is none.
const ReplyFormat* find_reply_format(StringView name);

// The format that the source of a chat template shows.
const ReplyFormat& reply_format_of(StringView chat_template);

// Whether a prompt ends within a block of reasoning, as templates of models that always reason do.
bool opens_reasoning(StringView prompt);

}  // namespace rushlight::llm
