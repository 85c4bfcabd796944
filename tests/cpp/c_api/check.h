/* As tests/cpp/support/check.h, for tests in C. */
#ifndef RUSHLIGHT_TESTS_C_CHECK_H_
#define RUSHLIGHT_TESTS_C_CHECK_H_

#include <rushlight.h>
#include <stdio.h>
#include <string.h>

static int g_failures = 0;

static inline void check(int ok, const char* what, int line) {
  if (ok) return;
  ++g_failures;
  fprintf(stderr, "line %d: CHECK(%s) failed\n", line, what);
}

static inline void check_status(rl_status got, rl_status wanted, const char* text,
                                const rl_error* error, int line) {
  if (got == wanted && strstr(error->text, text) != NULL) return;
  ++g_failures;
  fprintf(stderr, "line %d: got %s: %s\n", line, rl_status_name(got), error->text);
}

#define CHECK(condition) check((condition), #condition, __LINE__)
/* The call succeeds; or fails with this code and a text that has `part`. Both need an `error`. */
#define CHECK_OK(call) check_status((call), RL_OK, "", &error, __LINE__)
#define CHECK_FAILS(call, code, part) check_status((call), (code), (part), &error, __LINE__)

/* The path of a golden program, until the next call. */
static inline const char* golden(const char* folder, const char* name) {
  static char path[1024];
  snprintf(path, sizeof(path), "%s/%s.pte", folder, name);
  return path;
}

#endif
