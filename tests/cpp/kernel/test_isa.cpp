// The choice of an instruction set: the best one of the processor, or the one that RUSHLIGHT_CPU
// requests. If that is not possible, a message says so, and the best one is used. CMakeLists.txt
// runs this with several requests.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/platform/platform.h"

using namespace rushlight;
using namespace rushlight::kernels;

namespace {

std::vector<std::string> g_lines;

void keep_line(LogLevel level, const char* text, size_t length) {
  CHECK(level == LogLevel::Warning);
  g_lines.emplace_back(text, length);
}

bool says(const std::string& text) { return g_lines[0].find(text) != std::string::npos; }

void test_names() {
  for (Isa isa : kIsas) {
    Isa named = Isa::Plain;
    CHECK(isa_by_name(isa_name(isa), &named) && named == isa);
  }
  Isa untouched = Isa::Avx2;
  CHECK(!isa_by_name("sse9", &untouched) && untouched == Isa::Avx2);
  CHECK(isa_available(Isa::Plain));
#if defined(__aarch64__)
  CHECK(isa_available(Isa::Neon));
#else
  CHECK(!isa_available(Isa::Neon));
#endif
}

void test_wish(const char* wish) {
  Isa best = Isa::Plain;
  for (Isa isa : kIsas) best = isa_available(isa) ? isa : best;
  Isa wished = best;
  const bool known = wish == nullptr || *wish == '\0' || isa_by_name(wish, &wished);
  const bool granted = known && isa_available(wished);
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] { CHECK(current_isa() == (granted ? wished : best)); });
  }
  for (std::thread& asker : askers) asker.join();
  CHECK(g_lines.size() == (granted ? 0 : 1));  // only once, whichever thread is first
  if (g_lines.empty()) return;
  CHECK(says(std::string("RUSHLIGHT_CPU=") + wish));
  CHECK(says(std::string("using ") + isa_name(best)));
  CHECK(says("is none of") == !known);
}

void test_selection() {
  for (Isa isa : kIsas) {
    const Isa before = current_isa();
    CHECK(select_isa(isa) == isa_available(isa));
    CHECK(current_isa() == (isa_available(isa) ? isa : before));
  }
}

}  // namespace

int main() {
  Platform platform = {};
  platform.log = keep_line;
  set_platform(platform);
  test_names();
  test_wish(std::getenv("RUSHLIGHT_CPU"));
  test_selection();
  return test::check_result();
}
