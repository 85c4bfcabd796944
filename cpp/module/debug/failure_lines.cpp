#include "rushlight/module/debug/failure_lines.h"

#include <cstring>

#include "rushlight/module/debug/debug_lines.h"
#include "rushlight/module/debug/json.h"
#include "rushlight/program/program.h"

namespace rushlight {
namespace {

constexpr size_t kMaxLines = 3;  // of one place
constexpr size_t kMaxText = 256;

// Appends to a buffer; text that does not fit is truncated.
class Writer {
 public:
  Writer(char* buffer, size_t size) : buffer_(buffer), size_(size) {}

  void put(const char* text) {
    const size_t length = std::strlen(text);
    const size_t room = size_ - 1 - used_;
    const size_t n = length <= room ? length : whole_characters(text, room);
    std::memcpy(buffer_ + used_, text, n);
    used_ += n;
    buffer_[used_] = '\0';
    if (n < length) size_ = used_ + 1;  // later text must not be appended
  }
  size_t used() const { return used_; }

 private:
  char* buffer_;
  size_t size_;
  size_t used_ = 0;
};

// Appends ":12 in forward: `x + y`", piece by piece, after the line's file name.
class LineWriter {
 public:
  explicit LineWriter(Writer& out) : out_(out) {}

  void file(const char* text) {
    if (out_.used() > 0) out_.put("; ");
    out_.put(text);
  }
  void number(uint64_t line) {
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    for (; line > 0; line /= 10) digits[--at] = static_cast<char>('0' + line % 10);
    out_.put(":");
    out_.put(digits + at);
  }
  void function(const char* text) {
    if (text[0] == '\0') return;
    out_.put(" in ");
    out_.put(text);
  }
  void code(const char* text) {
    if (text[0] == '\0') return;
    out_.put(": `");
    out_.put(text + std::strspn(text, " \t"));
    out_.put("`");
  }

 private:
  Writer& out_;
};

// A row of a map of version 1: node, operator, file index, line, function, source text, module.
void put_row(Json row, Json files, Writer& out) {
  LineWriter line(out);
  const int64_t file = row[2].number(), number = row[3].number();
  char text[kMaxText];
  if (file < 0 || files[static_cast<size_t>(file)].text(text, sizeof(text)) == 0) return;
  line.file(text);
  line.number(number < 0 ? 0 : static_cast<uint64_t>(number));
  row[4].text(text, sizeof(text));
  line.function(text);
  row[5].text(text, sizeof(text));
  line.code(text);
}

void put_json(const Method& method, StringView data, Writer& out) {
  const Json map(data);
  if (map["version"].number() != 1) return;
  const Json files = map["files"];
  if (method.failed_delegate() != Method::kNoDelegate && method.failed_place()[0] != '\0') {
    const Json places = map["delegates"][method.name()][size_t{method.failed_delegate()}];
    const Json rows = places[StringView(method.failed_place())];
    const size_t n = rows.size() < kMaxLines ? rows.size() : kMaxLines;
    for (size_t i = 0; i < n; ++i) put_row(rows[i], files, out);
  }
  if (out.used() == 0 && method.failed_instruction() != Method::kNoInstruction) {
    put_row(map["methods"][method.name()][size_t{method.failed_instruction()}], files, out);
  }
}

void put_lines(const Method& method, const DebugLines& map, Writer& out) {
  uint64_t reference = 0;
  if (method.failed_delegate() != Method::kNoDelegate && method.failed_place()[0] != '\0') {
    const StringView place(method.failed_place());
    reference = map.place(method.name(), method.failed_delegate(), place);
  }
  if (reference == 0 && method.failed_instruction() != Method::kNoInstruction) {
    reference = map.instruction(method.name(), method.failed_instruction());
  }
  DebugLines::Line lines[kMaxLines];
  const size_t n = map.lines(reference, lines, kMaxLines);
  char text[kMaxText];
  for (size_t i = 0; i < n; ++i) {
    LineWriter line(out);
    if (map.text(lines[i].file, text, sizeof(text)) == 0) continue;
    line.file(text);
    line.number(lines[i].number);
    map.text(lines[i].function, text, sizeof(text));
    line.function(text);
    map.text(lines[i].text, text, sizeof(text));
    line.code(text);
  }
}

}  // namespace

size_t failure_lines(const Method& method, char* buffer, size_t size) {
  if (size == 0) return 0;
  buffer[0] = '\0';
  const bool in_delegate = method.failed_delegate() != Method::kNoDelegate;
  const bool in_instruction = method.failed_instruction() != Method::kNoInstruction;
  if (!in_delegate && !in_instruction) return 0;  // there may be no program
  const Result<Span<const uint8_t>> data =
      method.meta().program().get(StringView("rushlight/debug"));
  if (!data.ok()) return 0;
  Writer out(buffer, size);
  const DebugLines map(data.value());
  if (map.present()) {
    put_lines(method, map, out);
  } else {
    const char* text = reinterpret_cast<const char*>(data.value().data());
    put_json(method, StringView(text, data.value().size()), out);
  }
  return out.used();
}

}  // namespace rushlight
