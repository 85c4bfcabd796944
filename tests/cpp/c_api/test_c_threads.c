/* Handles that several threads use, and a kernel of the caller's. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

static rl_error error = RL_ERROR_INIT;

/* Two threads meet in a callback that holds a module. */
typedef struct meeting {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int is_inside;
  int may_leave;
  rl_module* module;
} meeting;

static int32_t wait_inside(void* userdata, const void* data, size_t bytes) {
  meeting* m = userdata;
  (void)data, (void)bytes;
  pthread_mutex_lock(&m->mutex);
  m->is_inside = 1;
  pthread_cond_broadcast(&m->changed);
  while (!m->may_leave) pthread_cond_wait(&m->changed, &m->mutex);
  pthread_mutex_unlock(&m->mutex);
  return 0;
}

static void* write_trace(void* userdata) {
  meeting* m = userdata;
  rl_error own = RL_ERROR_INIT;
  CHECK(rl_module_trace_write(m->module, wait_inside, m, &own) == RL_OK);
  return NULL;
}

static void test_busy(const char* folder) {
  static meeting m = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, NULL};
  CHECK_OK(rl_module_open(golden(folder, "counter"), NULL, &m.module, &error));
  CHECK_OK(rl_module_trace_start(m.module, NULL, &error));
  CHECK_OK(rl_module_load(m.module, "forward", &error));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, write_trace, &m) == 0);
  pthread_mutex_lock(&m.mutex);
  while (!m.is_inside) pthread_cond_wait(&m.changed, &m.mutex);
  pthread_mutex_unlock(&m.mutex);
  rl_module* copy = NULL;
  CHECK_FAILS(rl_module_load(m.module, "forward", &error), RL_INVALID_STATE,
              "the module is in use by another call");
  CHECK_FAILS(rl_module_clone(m.module, &copy, &error), RL_INVALID_STATE, "in use");
  CHECK_FAILS(rl_module_close(m.module, &error), RL_INVALID_STATE, "in use");
  CHECK_OK(rl_module_cancel(m.module, &error)); /* of a call that cannot be cancelled */
  pthread_mutex_lock(&m.mutex);
  m.may_leave = 1;
  pthread_cond_broadcast(&m.changed);
  pthread_mutex_unlock(&m.mutex);
  pthread_join(thread, NULL);
  const float one[2] = {1, 1};
  const int32_t sizes[] = {2};
  const rl_value_v1 x = rl_tensor(one, RL_FLOAT32, sizes, 1);
  CHECK_OK(rl_module_run(m.module, "forward", &x, 1, NULL, 0, &error)); /* that was not cancelled */
  CHECK_OK(rl_module_close(m.module, &error));
}

enum { N_THREADS = 4, N_RUNS = 20 };

/* out = x + y, and a call more in *self. */
static int32_t add(void* self, const rl_kernel_call_v1* call) {
  rl_value_v1 x = RL_VALUE_INIT, y = RL_VALUE_INIT, out = RL_VALUE_INIT;
  if (call->host->value(call->context, 0, &x) != RL_OK) return RL_INTERNAL;
  if (call->host->value(call->context, 1, &y) != RL_OK) return RL_INTERNAL;
  if (call->host->value(call->context, 3, &out) != RL_OK) return RL_INTERNAL;
  for (size_t i = 0; i < out.nbytes / sizeof(float); ++i) {
    ((float*)out.data)[i] = ((float*)x.data)[i] + ((float*)y.data)[i];
  }
  atomic_fetch_add((atomic_int*)self, 1);
  return RL_OK;
}

/* Each thread has a module of its own, and all use one kernel and one language model. */
typedef struct worker {
  const char* folder;
  rl_llm* llm;
  rl_module* module;
  int32_t token;
} worker;

static int32_t take_token(void* userdata, const rl_piece* piece) {
  worker* w = userdata;
  for (uint32_t i = 0; i < piece->n_tokens; ++i) w->token = w->token * 31 + piece->tokens[i];
  return 0;
}

static void* work(void* userdata) {
  worker* w = userdata;
  rl_error own = RL_ERROR_INIT;
  const float one[2] = {1, 1};
  const int32_t sizes[] = {2}, prompt[] = {5, 6, 7};
  const rl_value_v1 x = rl_tensor(one, RL_FLOAT32, sizes, 1);
  rl_generate_options options = {.size = sizeof options};
  CHECK(rl_llm_default_options(w->llm, &options, &own) == RL_OK);
  options.temperature = 0;
  options.max_tokens = 5;
  options.ignores_end = 1;
  for (int i = 0; i < N_RUNS; ++i) {
    CHECK(rl_module_run(w->module, "forward", &x, 1, NULL, 0, &own) == RL_OK);
  }
  CHECK(rl_llm_generate(w->llm, prompt, 3, &options, take_token, w, NULL, &own) == RL_OK);
  CHECK(rl_module_close(w->module, &own) == RL_OK);
  return NULL;
}

static void test_parallel(const char* folder) {
  static worker workers[N_THREADS];
  static atomic_int calls = 0;
  static const rl_kernel_v1 kernel = {RL_KERNEL_V1_VERSION,
                                      sizeof(rl_kernel_v1),
                                      "aten::add.out",
                                      "ttsw=",
                                      "v1/6;0|6;0|6;0",
                                      &calls,
                                      add,
                                      0};
  const rl_kernel_v1* const kernels[] = {&kernel};
  rl_module_options options = RL_MODULE_OPTIONS_INIT;
  options.kernels = kernels;
  options.n_kernels = 1;
  pthread_t threads[N_THREADS];
  rl_llm* llm = NULL;
  rl_module* module = NULL;
  CHECK_OK(rl_llm_open(golden(folder, "llm/v1"), NULL, &llm, &error));
  CHECK_OK(rl_module_open(golden(folder, "counter"), &options, &module, &error));
  for (int i = 0; i < N_THREADS; ++i) {
    workers[i] = (worker){folder, llm, NULL, 0};
    CHECK_OK(rl_module_clone(module, &workers[i].module, &error));
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < N_THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 1; i < N_THREADS; ++i) CHECK(workers[i].token == workers[0].token);
  CHECK(atomic_load(&calls) == N_THREADS * N_RUNS);
  CHECK_OK(rl_module_close(module, &error));
  CHECK_OK(rl_llm_close(llm, &error));
}

/* Many handles are opened and closed in any order, and no handle comes back. */
static void test_many(const char* folder) {
  enum { N = 100 };
  rl_module *modules[N], *first = NULL;
  CHECK_OK(rl_module_open(golden(folder, "add"), NULL, &first, &error));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < N; ++i) CHECK_OK(rl_module_clone(first, &modules[i], &error));
    for (int i = 0; i < N; ++i) {
      rl_module* one = modules[i * 37 % N];
      CHECK_OK(rl_module_close(one, &error));
      CHECK_FAILS(rl_module_close(one, &error), RL_INVALID_STATE, "not open");
    }
  }
  CHECK_OK(rl_module_close(first, &error));
  CHECK_FAILS(rl_module_load(first, "forward", &error), RL_INVALID_STATE, "not open");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  test_busy(argv[1]);
  test_parallel(argv[1]);
  test_many(argv[1]);
  return g_failures == 0 ? 0 : 1;
}
