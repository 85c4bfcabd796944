// A test is a main() that returns check_result(). If a CHECK fails, it prints what and where, and
// continues.
#pragma once

#include <cstdio>

namespace rushlight {
namespace test {

inline int& failures() {
  static int count = 0;
  return count;
}

inline void check(bool ok, const char* what, const char* file, int line) {
  if (ok) return;
  ++failures();
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed\n", file, line, what);
}

// The return value of main(): 0 if every CHECK succeeded.
inline int check_result() {
  if (failures() != 0) std::fprintf(stderr, "%d checks failed\n", failures());
  return failures() == 0 ? 0 : 1;
}

}  // namespace test
}  // namespace rushlight

#define CHECK(condition) ::rushlight::test::check((condition), #condition, __FILE__, __LINE__)
