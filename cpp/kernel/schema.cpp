#include "rushlight/kernel/schema.h"

#include <cstring>

#include "rushlight/kernel/foreign_kernel.h"

namespace rushlight {
namespace {

constexpr size_t kMaxShown = 200;  // bytes of a schema in a message

StringView trimmed(StringView text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  while (begin < end && *begin == ' ') ++begin;
  while (end > begin && end[-1] == ' ') --end;
  return {begin, static_cast<size_t>(end - begin)};
}

// Splits arguments at commas that stand in no brackets and no text.
class Arguments {
 public:
  // Of "name(arguments) -> results".
  explicit Arguments(StringView schema) {
    const void* open = std::memchr(schema.data(), '(', schema.size());
    end_ = schema.data() + schema.size();
    at_ = open != nullptr ? static_cast<const char*>(open) + 1 : end_;
  }

  // The next argument, as "float a=1.0"; false behind the last one. `*` is left out.
  bool next(StringView* argument) {
    do {
      if (!next_part(argument)) return false;
    } while (*argument == StringView("*"));
    return !argument->empty();
  }

 private:
  bool next_part(StringView* part) {
    if (closed_ || at_ >= end_) return false;
    const char* begin = at_;
    int depth = 0;
    char quote = '\0';
    for (; at_ < end_; ++at_) {
      const char c = *at_;
      if (quote != '\0') {
        if (c == '\\') ++at_;
        if (c == quote) quote = '\0';
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '(' || c == '[') {
        ++depth;
      } else if ((c == ')' || c == ']') && depth-- == 0) {
        closed_ = true;
        break;
      } else if (c == ',' && depth == 0) {
        break;
      }
    }
    if (at_ > end_) at_ = end_;
    *part = trimmed({begin, static_cast<size_t>(at_ - begin)});
    ++at_;
    return true;
  }

  const char* at_;
  const char* end_;
  bool closed_ = false;
};

// An argument of a schema: its letter of kernel.h, '?' for a type that no kernel takes.
struct Declared {
  char letter = '?';
  bool optional = false;
  StringView type;
  StringView name;
};

char letter_of(StringView base, bool listed, bool optional_items, bool written) {
  const auto is = [base](const char* name) { return base == StringView(name); };
  if (is("Tensor")) {
    if (listed) return optional_items ? (written ? '?' : 'O') : written ? 'W' : 'T';
    return written ? 'w' : 't';
  }
  if (is("int") || is("SymInt")) return listed ? 'I' : 'i';
  if (is("float") || is("SymFloat")) return listed ? 'D' : 'd';
  if (is("bool") || is("SymBool")) return listed ? 'B' : 'b';
  if (is("ScalarType") || is("Layout") || is("MemoryFormat")) return listed ? '?' : 'i';
  if (is("str")) return listed ? '?' : 'S';
  if (is("Scalar")) return listed ? '?' : 's';
  return '?';
}

// Reads "Tensor(a!)? name=default": the type ends at the first space outside of parentheses.
Declared read(StringView argument) {
  Declared out;
  size_t at = 0;
  int depth = 0;
  const auto at_end = [&] { return at >= argument.size(); };
  for (; !at_end() && (argument.data()[at] != ' ' || depth > 0); ++at) {
    if (argument.data()[at] == '(') ++depth;
    if (argument.data()[at] == ')') --depth;
  }
  out.type = {argument.data(), at};
  size_t end = at;
  while (end < argument.size() && argument.data()[end] != '=') ++end;
  out.name = trimmed({argument.data() + at, end - at});

  size_t base = 0;
  while (base < out.type.size() && std::strchr("([?", out.type.data()[base]) == nullptr) ++base;
  bool listed = false, optional_items = false, written = false;
  for (size_t k = base; k < out.type.size(); ++k) {
    const char c = out.type.data()[k];
    if (c == '!') written = true;
    if (c == '[') {
      listed = true;
      optional_items = out.optional;
      out.optional = false;
    }
    if (c == '?') out.optional = true;
  }
  out.letter = letter_of({out.type.data(), base}, listed, optional_items, written);
  return out;
}

// The kind of an argument in words.
const char* kind_of(char letter) {
  static constexpr char kLetters[] = "twTWOidbsSIDB";
  static constexpr const char* kKinds[] = {
      "Tensor", "Tensor(a!)", "Tensor[]", "Tensor(a!)[]", "Tensor?[]", "int",   "float",
      "bool",   "Scalar",     "str",      "int[]",        "float[]",   "bool[]"};
  const char* at = letter != '\0' ? std::strchr(kLetters, letter) : nullptr;
  return at != nullptr ? kKinds[at - kLetters] : "nothing";
}

}  // namespace

StringView find_schema(Span<const uint8_t> lines, StringView name) {
  const auto* at = reinterpret_cast<const char*>(lines.data());
  const char* end = at + lines.size();
  while (at < end) {
    const void* line_end = std::memchr(at, '\n', static_cast<size_t>(end - at));
    const char* stop = line_end != nullptr ? static_cast<const char*>(line_end) : end;
    const auto length = static_cast<size_t>(stop - at);
    if (length > name.size() && at[name.size()] == '(' &&
        std::memcmp(at, name.data(), name.size()) == 0) {
      return {at, length};
    }
    at = stop + 1;
  }
  return {};
}

Status check_schema(const Kernel& kernel, StringView schema, Message& message) {
  if (takes_any(kernel)) return {};
  const int shown = static_cast<int>(schema.size() < kMaxShown ? schema.size() : kMaxShown);
  Arguments arguments(schema);
  StringView argument;
  const char* at = kernel.signature;
  size_t index = 0;
  for (; arguments.next(&argument); ++index) {
    const Declared declared = read(argument);
    const bool optional = *at == '?';
    const char letter = at[optional ? 1 : 0];
    if (letter == declared.letter && optional == declared.optional) {
      at += optional ? 2 : 1;
      continue;
    }
    const bool ends = letter == '\0' || letter == '=';
    return message.fail(Code::InvalidType,
                        "the kernel does not fit the operator: argument %zu (%.*s) is %.*s in the "
                        "program's schema %.*s, and %s%s in the kernel",
                        index, declared.name.len(), declared.name.data(), declared.type.len(),
                        declared.type.data(), shown, schema.data(),
                        ends ? "absent" : kind_of(letter), optional ? "?" : "");
  }
  if (*at == '=' || *at == '\0') return {};
  size_t count = index;
  for (; *at != '\0' && *at != '='; ++at) count += *at != '?' ? 1 : 0;
  return message.fail(Code::InvalidType,
                      "the kernel does not fit the operator: it takes %zu arguments, and the "
                      "program's schema %.*s has %zu",
                      count, shown, schema.data(), index);
}

Status check_against_schemas(const Kernel& kernel, const NamedData& program, Message& message) {
  const Result<Span<const uint8_t>> schemas = program.get(StringView(kSchemasKey));
  if (!schemas.ok()) return {};
  const StringView schema = find_schema(schemas.value(), StringView(kernel.name));
  return schema.empty() ? Status() : check_schema(kernel, schema, message);
}

}  // namespace rushlight
