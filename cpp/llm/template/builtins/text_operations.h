// Operations on text that methods and filters share.
#pragma once

#include <vector>

#include "rushlight/llm/template/values/run_context.h"

namespace rushlight::llm {

enum class Side : uint8_t { Left, Right, Both };  // where text is filled up

struct Line {
  size_t begin, end;  // without its line break
  size_t next;        // where the next line begins
};

// Python's str.splitlines.
std::vector<Line> lines_of(StringView text);

// `characters` are those to take off; white space if it is Missing or None.
Status strip_text(RunContext& run, const Text& text, const Value& characters, bool left, bool right,
                  Value* out);
// `most`: how many to replace; all if it is negative.
Status replace_text(RunContext& run, const Text& text, const Text& from, const Text& to,
                    int64_t most, Value* out);
// `only_text`: other items are refused, else written as text.
Status join_items(RunContext& run, const Value& items, const Text& separator, bool only_text,
                  Value* out);
Status pad_text(RunContext& run, const Text& text, int64_t width, const Text& fill, Side side,
                Value* out);

std::string capitalized(StringView text);
// Whether there are letters of this case, and none of the other one.
bool has_only_case(StringView text, unsigned flag);

}  // namespace rushlight::llm
