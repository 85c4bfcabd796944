/* All memory of the C interface comes from the caller's allocator: it is counted, and fails at each
 * call in turn. Every call then says so, and leaves nothing behind. */
#include <stdlib.h>

#include "check.h"

static rl_error error = RL_ERROR_INIT;
static size_t g_allocations = 0, g_live = 0;
static size_t g_left = 0; /* allocations up to the one that fails; 0: none does */
static int g_has_failed = 0, g_is_lasting = 0;

static void* allocate(void* userdata, size_t bytes, size_t alignment) {
  CHECK(userdata == &g_live);
  if (g_left > 0 && --g_left == 0) {
    g_has_failed = 1;
    if (g_is_lasting) g_left = 1;
    return NULL;
  }
  void* memory = aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (memory == NULL) return NULL;
  ++g_allocations;
  ++g_live;
  return memory;
}

static void release(void* userdata, void* memory) {
  (void)userdata;
  --g_live;
  free(memory);
}

/* The code of a call, unless one failed before it. */
static rl_status g_code = RL_OK;
#define TRY(call) (g_code = g_code == RL_OK ? (call) : g_code)

static int32_t ignore(void* userdata, const void* data, size_t bytes) {
  (void)userdata, (void)data, (void)bytes;
  return 0;
}

static int32_t ignore_piece(void* userdata, const rl_piece* piece) {
  (void)userdata, (void)piece;
  return 0;
}

static int32_t copy_bytes(void* userdata, uint64_t offset, void* to, size_t bytes) {
  memcpy(to, (const char*)userdata + offset, bytes);
  return 0;
}

static void use_module(const char* path, rl_source* source) {
  rl_module *module = NULL, *copy = NULL;
  rl_module_options options = {.size = sizeof options, .threads = 1, .scratch_bytes = 4096};
  options.reports_failures = 1;
  const float ones[2] = {1, 1};
  const int32_t sizes[] = {2};
  const rl_value_v1 x = rl_tensor(ones, RL_FLOAT32, sizes, 1);
  rl_value_v1 y = RL_VALUE_INIT;
  rl_trace_options trace = {.size = sizeof trace, .bytes = 8192};
  unsigned char saved[4096];
  if (source == NULL) {
    TRY(rl_module_open(path, &options, &module, &error));
  } else {
    TRY(rl_module_open_source(source, &options, &module, &error));
  }
  TRY(rl_module_trace_start(module, &trace, &error));
  TRY(rl_module_run(module, "forward", &x, 1, &y, 1, &error));
  TRY(rl_module_trace_write(module, ignore, NULL, &error));
  TRY(rl_module_fork(module, &copy, &error));
  TRY(rl_module_snapshot(copy, saved, sizeof saved, NULL, &error));
  const size_t before = g_allocations;
  TRY(rl_module_run(module, "forward", &x, 1, &y, 1, &error));
  CHECK(g_allocations == before);
  CHECK_OK(rl_module_close(module, &error)); /* closing needs no memory */
  CHECK_OK(rl_module_close(copy, &error));
}

static void use_llm(const char* path) {
  rl_llm* llm = NULL;
  rl_session *session = NULL, *copy = NULL;
  rl_grammar* grammar = NULL;
  rl_llm_options options = {.size = sizeof options, .threads = 1};
  int32_t tokens[64];
  size_t n = 0;
  TRY(rl_llm_open(path, &options, &llm, &error));
  TRY(rl_llm_encode(llm, (rl_text_v1){"a lamp", 6}, 0, tokens, 64, &n, &error));
  rl_generate_options wanted = {.size = sizeof wanted};
  TRY(rl_llm_default_options(llm, &wanted, &error));
  wanted.max_tokens = 3;
  TRY(rl_grammar_from_regex(llm, (rl_text_v1){"[a-z ]*", 7}, &grammar, &error));
  wanted.grammar = grammar;
  TRY(rl_session_open(llm, &session, &error));
  TRY(rl_session_generate(session, tokens, n, &wanted, ignore_piece, NULL, NULL, &error));
  TRY(rl_session_fork(session, &copy, &error));
  TRY(rl_session_tokens(copy, tokens, 64, &n, &error));
  CHECK_OK(rl_session_close(copy, &error));
  CHECK_OK(rl_session_close(session, &error));
  CHECK_OK(rl_grammar_close(grammar, &error));
  CHECK_OK(rl_llm_close(llm, &error));
}

typedef struct task {
  const char* path;
  rl_source* source;
  int is_llm;
} task;

static void use(const task* task) {
  g_code = RL_OK;
  if (task->is_llm) {
    use_llm(task->path);
  } else {
    use_module(task->path, task->source);
  }
}

/* Fails the n-th allocation for each n, or for some if there are many. */
static void fail_each(const task* task) {
  use(task); /* what is kept for the process is there then */
  const size_t baseline = g_live;
  size_t failures = 0;
  for (size_t n = 1;; n += 1 + n / 64) {
    g_left = n;
    g_has_failed = 0;
    use(task);
    g_left = 0;
    if (!g_has_failed) break;
    ++failures;
    const int is_told =
        g_code == RL_MEMORY_ALLOCATION_FAILED || g_code == RL_DELEGATE_MEMORY_ALLOCATION_FAILED;
    /* What can be done without is left out. */
    if (!is_told && g_code != RL_OK) {
      fprintf(stderr, "allocation %zu: %s: %s\n", n, rl_status_name(g_code), error.text);
      ++g_failures;
    }
    if (g_live != baseline) {
      fprintf(stderr, "allocation %zu: %zu blocks, and %zu before\n", n, g_live, baseline);
      ++g_failures;
      return;
    }
  }
  CHECK(failures > 10);
  use(task);
  CHECK(g_code == RL_OK && g_live == baseline);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rl_allocator allocator = {.size = sizeof allocator, .userdata = &g_live};
  CHECK_FAILS(rl_set_allocator(&allocator, &error), RL_INVALID_ARGUMENT, "lacks");
  allocator.allocate = allocate;
  allocator.free = release;
  CHECK_OK(rl_set_allocator(&allocator, &error));
  CHECK_FAILS(rl_set_allocator(&allocator, &error), RL_INVALID_STATE, "once");
  char path[1024];
  strcpy(path, golden(argv[1], "counter"));
  static char image[1 << 16];
  FILE* file = fopen(path, "rb");
  if (file == NULL) return 2;
  rl_source source = {.size = sizeof source, .userdata = image, .read = copy_bytes};
  source.bytes = fread(image, 1, sizeof image, file);
  fclose(file);
  for (g_is_lasting = 0; g_is_lasting < 2; ++g_is_lasting) {
    strcpy(path, golden(argv[1], "counter"));
    fail_each(&(task){path, NULL, 0});
    fail_each(&(task){path, &source, 0});
    strcpy(path, golden(argv[1], "llm/v1"));
    fail_each(&(task){path, NULL, 1});
  }
  return g_failures == 0 ? 0 : 1;
}
