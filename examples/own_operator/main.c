/* Runs a program, with the operator's kernel or without: main MODEL.pte TOKENS LOGITS RUNS. Tokens
 * are int64 and logits float32, as bytes in files; it prints the median time of a run in
 * microseconds. */
#include <rushlight.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if HAS_KERNEL
/* The kernels of rotary.cpp, which is linked. */
const rl_kernel_v1* rl_get_kernel_v1(uint32_t index);
#endif

static int fail(const char* what, const rl_error* error) {
  fprintf(stderr, "%s: %s\n", what, error != NULL ? error->text : "it cannot be read or written");
  return 1;
}

static double now(void) {
  struct timespec time;
  timespec_get(&time, TIME_UTC);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* The int64 numbers of a file, to be freed. */
static int64_t* read_tokens(const char* path, int32_t* count) {
  FILE* file = fopen(path, "rb");
  int64_t* tokens = malloc(1 << 20);
  *count = file != NULL && tokens != NULL ? (int32_t)fread(tokens, 8, 1 << 17, file) : 0;
  if (file != NULL) fclose(file);
  return tokens;
}

int main(int argc, char** argv) {
  if (argc != 5) return fprintf(stderr, "usage: main MODEL.pte TOKENS LOGITS RUNS\n"), 2;
  rl_error error = RL_ERROR_INIT;
  rl_module_options options = RL_MODULE_OPTIONS_INIT;
  options.threads = 1;
#if HAS_KERNEL
  const rl_kernel_v1* kernels[] = {rl_get_kernel_v1(0)};
  options.kernels = kernels;
  options.n_kernels = 1;
#endif
  rl_module* module = NULL;
  if (rl_module_open(argv[1], &options, &module, &error) != RL_OK) return fail(argv[1], &error);

  int32_t sizes[] = {1, 0};
  int64_t* tokens = read_tokens(argv[2], &sizes[1]);
  if (sizes[1] == 0) return fail(argv[2], NULL);
  const rl_value_v1 input = rl_tensor(tokens, RL_INT64, sizes, 2);
  rl_value_v1 logits = RL_VALUE_INIT;
  const int runs = atoi(argv[4]) > 0 ? atoi(argv[4]) : 1;
  double* times = malloc((size_t)runs * sizeof *times);
  for (int i = 0; times != NULL && i < runs; ++i) {
    const double begin = now();
    if (rl_module_run(module, "forward", &input, 1, &logits, 1, &error) != RL_OK) {
      return fail("forward", &error);
    }
    times[i] = now() - begin;
  }
  qsort(times, (size_t)runs, sizeof *times, by_size);
  printf("%.1f\n", times[runs / 2]);

  FILE* file = fopen(argv[3], "wb");
  if (file == NULL || fwrite(logits.data, 1, logits.nbytes, file) != logits.nbytes ||
      fclose(file) != 0) {
    return fail(argv[3], NULL);
  }
  free(times);
  free(tokens);
  return rl_module_close(module, &error) == RL_OK ? 0 : fail("close", &error);
}
