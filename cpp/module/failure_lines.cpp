#include "rushlight/module/failure_lines.h"

#include <cstring>

#include "rushlight/module/json.h"
#include "rushlight/program/program.h"

namespace rushlight {
namespace {

constexpr size_t kMaxLines = 3;  // of one place
constexpr size_t kMaxText = 256;

// Appends to a buffer; what does not fit is cut.
class Writer {
 public:
  Writer(char* buffer, size_t size) : buffer_(buffer), size_(size) {}

  void put(const char* text) {
    const size_t length = std::strlen(text);
    const size_t room = size_ - 1 - used_;
    const size_t n = length < room ? length : room;
    std::memcpy(buffer_ + used_, text, n);
    used_ += n;
    buffer_[used_] = '\0';
  }
  size_t used() const { return used_; }

 private:
  char* buffer_;
  size_t size_;
  size_t used_ = 0;
};

// A row of the map: node, operator, file index, line, function, source text, module path.
void put_row(Json row, Json files, Writer& out) {
  const int64_t file = row[2].number();
  char text[kMaxText];
  if (file < 0 || files[static_cast<size_t>(file)].text(text, sizeof(text)) == 0) return;
  if (out.used() > 0) out.put("; ");
  out.put(text);
  char digits[24];
  size_t at = sizeof(digits) - 1;
  digits[at] = '\0';
  for (int64_t line = row[3].number(); line > 0; line /= 10) {
    digits[--at] = static_cast<char>('0' + line % 10);
  }
  out.put(":");
  out.put(digits + at);
  if (row[4].text(text, sizeof(text)) > 0) {
    out.put(" in ");
    out.put(text);
  }
  if (row[5].text(text, sizeof(text)) == 0) return;
  out.put(": `");
  out.put(text + std::strspn(text, " \t"));
  out.put("`");
}

}  // namespace

size_t failure_lines(const Method& method, char* buffer, size_t size) {
  if (size == 0) return 0;
  buffer[0] = '\0';
  const bool in_delegate = method.failed_delegate() != Method::kNoDelegate;
  const bool in_instruction = method.failed_instruction() != Method::kNoInstruction;
  if (!in_delegate && !in_instruction) return 0;  // it may have no program
  const Result<Span<const uint8_t>> data =
      method.meta().program().get(StringView("rushlight/debug"));
  if (!data.ok()) return 0;
  const Json map(
      StringView(reinterpret_cast<const char*>(data.value().data()), data.value().size()));
  if (map["version"].number() != 1) return 0;
  const Json files = map["files"];
  Writer out(buffer, size);
  if (in_delegate && method.failed_place()[0] != '\0') {
    const Json places = map["delegates"][method.name()][size_t{method.failed_delegate()}];
    const Json rows = places[StringView(method.failed_place())];
    const size_t n = rows.size() < kMaxLines ? rows.size() : kMaxLines;
    for (size_t i = 0; i < n; ++i) put_row(rows[i], files, out);
  }
  if (out.used() == 0 && in_instruction) {
    put_row(map["methods"][method.name()][size_t{method.failed_instruction()}], files, out);
  }
  return out.used();
}

}  // namespace rushlight
