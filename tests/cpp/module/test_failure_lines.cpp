// Lines of Python for a failure, and the JSON reader that they use, which no text may harm.
#include <string>

#include "check.h"
#include "debug_map_builder.h"
#include "delegates.h"
#include "rushlight/module/debug/failure_lines.h"
#include "rushlight/module/debug/json.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

std::string text_of(Json value) {
  char buffer[64];
  const size_t n = value.text(buffer, sizeof(buffer));
  return std::string(buffer, n);
}

void test_json() {
  const Json map(
      StringView(" {\"a\" : [1, 22, {\"x\": []}, -3, 1.5], \"b\\n\": "
                 "\"q\\\"\\u00e9\\ud83d\\ude00\", \"c\":{}}"));
  CHECK(map.present() && map["a"].size() == 5 && map["a"][1].number() == 22);
  CHECK(map["a"][2]["x"].present() && map["a"][2]["x"].size() == 0 && map["c"].present());
  CHECK(map["a"][3].number() == -1 && map["a"][4].number() == -1);
  CHECK(!map["a"][5].present() && !map["d"].present() && !map["d"][0]["e"].present());
  CHECK(!map[size_t{0}].present() && !map["a"]["x"].present() && map["d"].size() == 0);
  CHECK(text_of(map["b\n"]) == "q\"\xc3\xa9\xf0\x9f\x98\x80" && text_of(map["a"]).empty());
  CHECK(text_of(map["d"]).empty());
  const Json spaced(StringView("[1\t,2\r\n]"));
  CHECK(spaced[size_t{0}].number() == 1 && spaced[1].number() == 2 && spaced.size() == 2);
  std::string deep(1 << 20, '[');
  CHECK(!Json(StringView(deep.data(), deep.size())).present());
  deep += std::string(1 << 20, ']');
  CHECK(Json(StringView(deep.data(), deep.size()))[size_t{0}].size() == 1);
  char small[3];
  CHECK(map["b\n"].text(small, sizeof(small)) == 2 && map["b\n"].text(small, 0) == 0);
}

// Reads every truncation of a text, and every text with one byte changed, without harm.
void test_damaged_json() {
  const std::string whole =
      "{\"version\": 1, \"files\": [\"m\\u00e9.py\"], \"methods\": {\"f\": [[\"n\", 3]]}}";
  const auto read = [](const std::string& damaged) {
    const std::string exact(damaged);  // so that a sanitizer sees reads beyond the end
    const Json map(StringView(exact.data(), exact.size()));
    text_of(map["files"][size_t{0}]);
    map["methods"]["f"][size_t{0}][1].number();
    map["methods"]["f"].size();
  };
  for (size_t n = 0; n < whole.size(); ++n) read(whole.substr(0, n));
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const char c : {'"', '\\', '[', ']', '{', '}', ',', ':', 'u', '\0', ' '}) {
      std::string damaged = whole;
      damaged[i] = c;
      read(damaged);
      read(damaged.substr(0, i + 1));
    }
  }
}

class FailingBackend : public Backend {
 public:
  const char* place = "";
  bool fails_init = false;
  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    init.place->set(StringView(place));
    if (fails_init) return Code::NotSupported;
    return static_cast<void*>(this);
  }
  Status execute(const BackendRun& run, void*, EValue* const*, size_t) override {
    run.place->set(StringView(place));
    return Code::InvalidArgument;
  }
  void destroy(void*) override {}
};

std::string lines_for(const char* place, const std::string& debug, bool fails_init = false) {
  ProgramFile file;
  Plan plan;
  const int32_t x = plan.tensor({2});
  TensorOptions at;
  at.offset = 16;
  const int32_t y = plan.tensor({2}, at);
  plan.delegate("Failing", 0);
  plan.delegate_call(0, {x, y});
  plan.inputs = {x};
  plan.outputs = {y};
  file.plans = {plan};
  file.segments = {{1}, std::vector<uint8_t>(debug.begin(), debug.end())};
  file.named = {{"rushlight/debug", 1}};
  FailingBackend backend;
  backend.place = place;
  backend.fails_init = fails_init;
  BackendTable table;
  CHECK(table.add("Failing", &backend).ok());
  Loaded loaded(file.bytes());
  MethodOptions options = {};
  options.backends = &table;
  const Status status = loaded.load("forward", options);
  CHECK(status.ok() == !fails_init);
  if (status.ok()) CHECK(!run_on(loaded.method, {1, 2}).ok());
  char buffer[512];
  const size_t n = failure_lines(loaded.method, buffer, sizeof(buffer));
  return std::string(buffer, n);
}

std::string lines_for(const char* place, const Bytes& debug, bool fails_init = false) {
  return lines_for(place, std::string(debug.begin(), debug.end()), fails_init);
}

void test_lines() {
  DebugSections map;
  map.string(0, "a.py");
  map.string(0, "b.py");
  map.string(0, "forward");
  map.string(0, " self.f(x)");
  for (const uint64_t value : {1, 3, 1, 3 << 1, 4}) number(map.lines, value);  // a.py:3
  for (const uint64_t value : {2, 0, 1, 9 << 1, 0}) number(map.lines, value);  // b.py:9
  for (const uint64_t value : {2, 2 << 1, 1}) number(map.sets, value);  // the second, the first
  Bytes body, places;
  sized(places, {1 << 1, 5});  // one id, 5
  entry(places, 1, 0, 3);      // the set
  sized(body, {1 << 2, 1 << 1});
  sized(body, places);
  number(map.methods, 3);
  sized(map.methods, body);
  const Bytes debug = map.bytes();
  const std::string called = "a.py:3 in forward: `self.f(x)`";
  CHECK(lines_for("5", debug) == "b.py:9; " + called);
  CHECK(lines_for("5", debug, true) == "b.py:9; " + called);
  CHECK(lines_for("", debug) == called && lines_for("6", debug) == called);
  CHECK(lines_for("6", debug, true).empty());
  CHECK(lines_for("5", DebugSections().bytes()).empty());
}

void test_lines_of_version_1() {
  const std::string debug =
      "{\"version\": 1, \"files\": [\"a.py\", \"b.py\"],"
      " \"methods\": {\"forward\": [[\"call\", \"op\", 0, 3, \"forward\", \"  self.f(x)\", \"\"]]},"
      " \"delegates\": {\"forward\": [{\"mul\": [[\"mul\", \"op\", 1, 12, \"f\", \"x * y\", \"\"]],"
      " \"7\": [[\"a\", \"op\", 0, 1, \"\", \"\", \"\"], [\"b\", \"op\", -1, 1, \"\", \"\", \"\"],"
      " [\"b\", \"op\", 1, 2, \"g\", \"\", \"\"]]}]}}";
  CHECK(lines_for("mul", debug) == "b.py:12 in f: `x * y`");
  CHECK(lines_for("mul", debug, true) == "b.py:12 in f: `x * y`");
  CHECK(lines_for("7", debug) == "a.py:1; b.py:2 in g");
  CHECK(lines_for("", debug) == "a.py:3 in forward: `self.f(x)`");
  CHECK(lines_for("unknown", debug) == "a.py:3 in forward: `self.f(x)`");
  CHECK(lines_for("unknown", debug, true).empty());
  CHECK(lines_for("mul", "{\"version\": 2}").empty() && lines_for("mul", "no json").empty());
  char buffer[8];
  const Method never_loaded;
  CHECK(failure_lines(never_loaded, buffer, sizeof(buffer)) == 0 && buffer[0] == '\0');
}

}  // namespace

int main() {
  test_json();
  test_damaged_json();
  test_lines();
  test_lines_of_version_1();
  return check_result();
}
