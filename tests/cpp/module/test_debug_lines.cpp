// The debug map when read in place: runs, sets, strings with shared beginnings; and damaged maps,
// which must do no harm.
//
// Usage: test_debug_lines [MAP QUESTIONS], both files: prints the lines for
// "METHOD<tab>INSTRUCTION" and "METHOD<tab>DELEGATE<tab>ID" in MAP, for each line of QUESTIONS, and
// then damages the map.
#include "rushlight/module/debug/debug_lines.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "check.h"
#include "debug_map_builder.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

Span<const uint8_t> view(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

std::string text_of(const DebugLines& map, uint64_t number, size_t size = 64) {
  std::string buffer(size, '?');
  const size_t n = map.text(number, &buffer[0], size);
  CHECK(n < size && buffer[n] == '\0');
  return buffer.substr(0, n);
}

// "a.py:3 b.py:12": the lines of a reference.
std::string shown(const DebugLines& map, uint64_t reference, size_t most = 4) {
  DebugLines::Line lines[4];
  std::string text;
  const size_t n = map.lines(reference, lines, most);
  CHECK(n <= most);
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) text += ' ';
    text += text_of(map, lines[i].file) + ":" + std::to_string(lines[i].number);
  }
  return text;
}

void test_texts() {
  const Bytes bytes = debug_map();
  const DebugLines map(view(bytes));
  CHECK(map.present());
  CHECK(text_of(map, 1) == "12" && text_of(map, 4) == "f" && text_of(map, 5) == "forward");
  CHECK(text_of(map, 0).empty() && text_of(map, 8).empty() && text_of(map, ~uint64_t{0}).empty());
  CHECK(text_of(map, 5, 4) == "for" && text_of(map, 5, 1).empty());
  CHECK(text_of(map, 7) == "\xc3\xa9 * y" && text_of(map, 7, 4) == "\xc3\xa9 ");
  CHECK(text_of(map, 7, 2).empty());  // no part of a character
  char none[1];
  CHECK(map.text(5, none, 0) == 0);
}

void test_instructions() {
  const Bytes bytes = debug_map();
  const DebugLines map(view(bytes));
  const char* expected[] = {"a.py:3", "b.py:12", "b.py:15", "b.py:15", "b.py:15", "", ""};
  for (size_t i = 0; i < 7; ++i) CHECK(shown(map, map.instruction("forward", i)) == expected[i]);
  CHECK(map.instruction("forward", SIZE_MAX) == 0);
  for (const char* name : {"", "f", "forwar", "forwards", "mul", "z"}) {
    CHECK(map.instruction(name, 0) == 0 && map.place(name, 1, "0") == 0);
  }
}

void test_places() {
  const Bytes bytes = debug_map();
  const DebugLines map(view(bytes));
  const auto place = [&](size_t delegate, const char* id) {
    return shown(map, map.place("forward", delegate, id));
  };
  CHECK(place(1, "0") == "a.py:3" && place(1, "1") == "b.py:12" && place(1, "2") == "b.py:15");
  CHECK(place(1, "7") == "a.py:3 b.py:15" && place(1, "12") == "b.py:12");
  CHECK(place(1, "mul") == "b.py:15 b.py:12 a.py:3 b.py:15");
  CHECK(shown(map, map.place("forward", 1, "mul"), 2) == "b.py:15 b.py:12");
  CHECK(place(1, "20") == "b.py:12" && place(1, "26").empty() && place(1, "19").empty());
  for (const char* id : {"21", "22", "25"}) CHECK(place(1, id) == "b.py:15");
  for (const char* id : {"", "3", "6", "8", "00", "01", "-1", "+1", "x", "1234567890123456789"}) {
    CHECK(place(1, id).empty());
  }
  CHECK(place(0, "0").empty() && place(2, "0").empty() && place(SIZE_MAX, "0").empty());
}

void ask_everything(const uint8_t* data, size_t size) {
  // A separate copy, so that a sanitizer sees reads beyond the end.
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  for (size_t i = 0; i < size; ++i) exact[i] = data[i];
  const DebugLines map({exact.get(), size});
  for (const size_t index : {size_t{0}, size_t{2}, size_t{5}, SIZE_MAX}) {
    shown(map, map.instruction("forward", index));
    shown(map, map.place("forward", index, "1"));
  }
  for (const char* id : {"0", "7", "mul", "12", "999999999999999"}) {
    shown(map, map.place("forward", 1, id));
  }
  for (const uint64_t number : {uint64_t{1}, uint64_t{7}, ~uint64_t{0}}) {
    text_of(map, number, 3);
    shown(map, number);
  }
}

// Changes two random bytes at a time.
void damage(const Bytes& whole, int rounds) {
  uint32_t state = 1;
  const auto random = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
  for (int i = 0; i < rounds; ++i) {
    Bytes damaged = whole;
    for (int n = 0; n < 2; ++n) {
      damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
    }
    ask_everything(damaged.data(), damaged.size());
  }
}

// Every truncation of a map, every byte of it changed to several values, and two bytes at a time.
void test_damaged() {
  const Bytes whole = debug_map();
  for (size_t n = 0; n <= whole.size(); ++n) ask_everything(whole.data(), n);
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {0, 1, 2, 0x7f, 0x80, 0xff, whole[i] + 1, whole[i] - 1}) {
      Bytes damaged = whole;
      damaged[i] = static_cast<uint8_t>(change);
      ask_everything(damaged.data(), damaged.size());
    }
  }
  damage(whole, 20000);
  const Bytes other = {'R', 'L', 'D', 'M', 3, 0, 0, 0, 0, 0};
  CHECK(!DebugLines(view(other)).present() && !DebugLines({}).present());
}

void answer(const char* map_path, const char* questions_path) {
  std::ifstream file(map_path, std::ios::binary);
  const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
  const DebugLines map(view(bytes));
  std::ifstream questions(questions_path);
  for (std::string question; std::getline(questions, question);) {
    const size_t first = question.find('\t'), second = question.find('\t', first + 1);
    const std::string method = question.substr(0, first);
    const size_t number = std::stoul(question.substr(first + 1));
    const uint64_t reference =
        second == std::string::npos
            ? map.instruction(method.c_str(), number)
            : map.place(method.c_str(), number, question.substr(second + 1).c_str());
    DebugLines::Line lines[256];
    const size_t n = map.lines(reference, lines, 256);
    for (size_t i = 0; i < n; ++i) {
      std::printf(
          "%s%s:%llu in %s: %s", i > 0 ? "; " : "", text_of(map, lines[i].file, 512).c_str(),
          static_cast<unsigned long long>(lines[i].number),
          text_of(map, lines[i].function, 512).c_str(), text_of(map, lines[i].text, 512).c_str());
    }
    std::printf("\n");
  }
  damage(bytes, 500);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    answer(argv[1], argv[2]);
    return check_result();
  }
  test_texts();
  test_instructions();
  test_places();
  test_damaged();
  return check_result();
}
