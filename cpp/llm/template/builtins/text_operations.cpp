#include "rushlight/llm/template/builtins/text_operations.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/template/builtins/arguments.h"
#include "rushlight/llm/template/values/characters.h"
#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/print.h"

namespace rushlight::llm {

std::vector<Line> lines_of(StringView text) {
  std::vector<Line> lines;
  size_t begin = 0;
  for (Characters characters(text); !characters.at_end();) {
    const size_t end = characters.at();
    const uint32_t code = characters.next();
    const bool breaks = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) ||
                        code == 0x85 || code == 0x2028 || code == 0x2029;
    if (!breaks) continue;
    const bool pair = code == '\r' && !characters.at_end() && text.data()[characters.at()] == '\n';
    if (pair) characters.next();
    lines.push_back({begin, end, characters.at()});
    begin = characters.at();
  }
  if (begin < text.size()) lines.push_back({begin, text.size(), text.size()});
  return lines;
}

Status strip_text(RunContext& run, const Text& text, const Value& characters, bool left, bool right,
                  Value* out) {
  RL_TRY(run.charge(1 + text.size() / 16));
  TextRange range = {};
  if (characters.is(Kind::Missing) || characters.is(Kind::None)) {
    range = stripped(text.view(), left, right);
  } else {
    const Text* among = nullptr;
    RL_TRY(text_argument(run, "strip", characters, &among));
    RL_TRY(run.charge(among->size() * (1 + text.size() / 16)));
    const StringView view = among->view();
    range = stripped(text.view(), left, right, &view);
  }
  return run.make_text(text.slice(range.begin, range.end), out);
}

Status replace_text(RunContext& run, const Text& text, const Text& from, const Text& to,
                    int64_t most, Value* out) {
  RL_TRY(run.charge(1 + text.size() / 16));
  Text result;
  size_t at = 0;
  for (int64_t count = 0; most < 0 || count < most; ++count) {
    const size_t place = find_bytes(text.view(), from.view(), at);
    if (place == std::string::npos) break;
    RL_TRY(run.append(text.slice(at, place), &result));
    RL_TRY(run.append(to, &result));
    at = place + from.size();
    if (!from.empty()) continue;
    if (at == text.size()) break;
    const size_t next = at + byte_of_character({text.bytes().data() + at, text.size() - at}, 1);
    RL_TRY(run.append(text.slice(at, next), &result));
    at = next;
  }
  RL_TRY(run.append(text.slice(at, text.size()), &result));
  return run.make_text(std::move(result), out);
}

Status join_items(RunContext& run, const Value& items, const Text& separator, bool only_text,
                  Value* out) {
  Ref<ListObject> list;
  RL_TRY(items_of(run, items, &list));
  Text result;
  for (size_t i = 0; i < list->items.size(); ++i) {
    if (i != 0) RL_TRY(run.append(separator, &result));
    const Value& item = list->items[i];
    if (only_text && !item.is(Kind::String)) {
      return run.fail("'join' needs items that are str, not %s", type_name(item));
    }
    Text text;
    RL_TRY(to_text(run, item, &text));
    RL_TRY(run.append(text, &result));
  }
  return run.make_text(std::move(result), out);
}

Status pad_text(RunContext& run, const Text& text, int64_t width, const Text& fill, Side side,
                Value* out) {
  const auto length = static_cast<int64_t>(count_characters(text.view()));
  const int64_t missing = std::max<int64_t>(width - length, 0);
  if (missing > static_cast<int64_t>(run.limits.output)) {
    return run.charge_bytes(run.limits.output + 1);
  }
  const int64_t middle = missing / 2 + (missing & width & 1);
  const int64_t left = side == Side::Left ? missing : side == Side::Right ? 0 : middle;
  Text result;
  for (int64_t i = 0; i < left; ++i) RL_TRY(run.append(fill, &result));
  RL_TRY(run.append(text, &result));
  for (int64_t i = left; i < missing; ++i) RL_TRY(run.append(fill, &result));
  return run.make_text(std::move(result), out);
}

std::string capitalized(StringView text) {
  std::string out;
  Characters characters(text);
  if (!characters.at_end()) append_case(characters.next(), Case::Title, &out);
  const size_t at = characters.at();
  return out + change_case({text.data() + at, text.size() - at}, Case::Lower);
}

bool has_only_case(StringView text, unsigned flag) {
  bool has_one = false;
  for (Characters characters(text); !characters.at_end();) {
    const unsigned flags = character_flags(characters.next()) & (kUppercase | kLowercase);
    if ((flags & ~flag) != 0) return false;
    has_one |= flags != 0;
  }
  return has_one;
}

}  // namespace rushlight::llm
