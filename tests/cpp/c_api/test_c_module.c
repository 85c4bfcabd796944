/* Modules through the C interface: loading, describing, running, state, traces, misuse. */
#include <stdlib.h>

#include "check.h"

static rl_error error = RL_ERROR_INIT;

static rl_module* open_golden(const char* folder, const char* name) {
  rl_module* module = NULL;
  CHECK_OK(rl_module_open(golden(folder, name), NULL, &module, &error));
  return module;
}

static int32_t read_file(void* userdata, uint64_t offset, void* to, size_t bytes) {
  FILE* file = userdata;
  if (fseek(file, (long)offset, SEEK_SET) != 0) return 1;
  return fread(to, 1, bytes, file) == bytes ? 0 : 1;
}

static void test_versions(void) {
  CHECK(rl_abi_version() == RL_ABI_VERSION);
  CHECK_OK(rl_check_abi(RL_ABI_VERSION, &error));
  CHECK_FAILS(rl_check_abi(RL_ABI_VERSION + 1, &error), RL_NOT_SUPPORTED, "later library");
  CHECK_FAILS(rl_check_abi(1, &error), RL_NOT_SUPPORTED, "this library's header");
  CHECK(strcmp(rl_status_name(RL_INVALID_PROGRAM), "InvalidProgram") == 0);
  CHECK(strcmp(rl_status_name(12345), "?") == 0);
  CHECK(rl_version()[0] != '\0');
}

static void test_run(const char* folder) {
  rl_module* module = open_golden(folder, "add");
  rl_module_info info = {.size = sizeof info};
  CHECK_OK(rl_module_describe(module, &info, &error));
  CHECK(info.n_methods == 1 && info.memory_in_use == 0);
  rl_text_v1 name = {NULL, 0};
  CHECK_OK(rl_module_method_name(module, 0, &name, &error));
  CHECK(name.size == 7 && memcmp(name.data, "forward", 7) == 0);
  rl_value_info input = {.size = sizeof input};
  CHECK_OK(rl_module_describe_input(module, "forward", 0, &input, &error));
  CHECK(input.kind == RL_TENSOR && input.dtype == RL_FLOAT32 && input.rank == 2);
  CHECK(input.min_sizes[0] == 2 && input.max_sizes[1] == 3 && input.nbytes == 24);

  float x[6] = {1, 2, 3, 4, 5, 6}, turned[6] = {1, 4, 2, 5, 3, 6};
  const int32_t sizes[] = {2, 3}, strides[] = {1, 2};
  rl_value_v1 inputs[2] = {rl_tensor(x, RL_FLOAT32, sizes, 2), rl_tensor(x, RL_FLOAT32, sizes, 2)};
  rl_value_v1 y = RL_VALUE_INIT;
  for (int i = 0; i < 2; ++i) {
    CHECK_OK(rl_module_run(module, "forward", inputs, 2, &y, 1, &error));
    CHECK(y.kind == RL_TENSOR && y.rank == 2 && y.sizes[0] == 2 && y.nbytes == 24);
    for (int k = 0; k < 6; ++k) CHECK(((float*)y.data)[k] == 2 * x[k]);
    inputs[1].data = turned; /* the same numbers by columns */
    inputs[1].strides = strides;
  }
  float mine[6] = {0};
  CHECK_OK(rl_module_set_output(module, "forward", 0, mine, sizeof mine, &error));
  CHECK_OK(rl_module_run(module, "forward", inputs, 2, &y, 1, &error));
  CHECK(y.data == mine && mine[5] == 12);
  CHECK_OK(rl_module_set_output(module, "forward", 0, NULL, 0, &error));
  CHECK_OK(rl_module_run(module, "forward", inputs, 2, &y, 1, &error));
  CHECK(y.data != mine);
  CHECK_FAILS(rl_module_set_output(module, "forward", 0, mine, 8, &error), RL_INVALID_ARGUMENT,
              "it takes 24");
  CHECK_OK(rl_module_close(module, &error));
}

static void test_loading(const char* folder) {
  rl_module *module = NULL, *copy = NULL;
  FILE* file = fopen(golden(folder, "linear"), "rb");
  CHECK(file != NULL);
  fseek(file, 0, SEEK_END);
  rl_source source = {.size = sizeof source, .userdata = file, .read = read_file};
  source.bytes = (uint64_t)ftell(file);
  CHECK_OK(rl_module_open_source(&source, NULL, &module, &error));
  fclose(file);
  CHECK_OK(rl_module_clone(module, &copy, &error));
  CHECK_OK(rl_module_close(module, &error));
  CHECK_OK(rl_module_load(copy, "forward", &error)); /* the bytes are the clone's, too */
  rl_method_info method = {.size = sizeof method};
  CHECK_OK(rl_module_describe_method(copy, "forward", &method, &error));
  CHECK(method.is_loaded == 1 && method.structures > 0);
  CHECK_OK(rl_module_close(copy, &error));
  CHECK_FAILS(rl_module_open("no/such/file", NULL, &module, &error), RL_ACCESS_FAILED, "no such");
  char bytes[64] = "not a program";
  CHECK_FAILS(rl_module_open_memory(bytes, sizeof bytes, NULL, &module, &error),
              RL_INVALID_PROGRAM, "");
  rl_module_options options = {.size = sizeof options, .memory_limit = 100};
  CHECK_OK(rl_module_open(golden(folder, "add"), &options, &module, &error));
  CHECK_FAILS(rl_module_load(module, "forward", &error), RL_OUT_OF_RESOURCES, "limit is 100");
  CHECK_OK(rl_module_close(module, &error));
  options.size = 0;
  CHECK_FAILS(rl_module_open("x", &options, &module, &error), RL_INVALID_ARGUMENT, "its size is 0");
}

static void test_misuse(const char* folder) {
  rl_module* module = open_golden(folder, "add");
  rl_value_v1 y = RL_VALUE_INIT;
  float x[6] = {0};
  const int32_t sizes[] = {2, 3}, others[] = {3, 3};
  rl_value_v1 inputs[2] = {rl_tensor(x, RL_FLOAT32, sizes, 2), rl_tensor(x, RL_FLOAT32, sizes, 2)};
  const char* method = "forward";
  CHECK_FAILS(rl_module_run(module, "backward", inputs, 2, &y, 1, &error), RL_INVALID_ARGUMENT,
              "forward");
  CHECK_FAILS(rl_module_run(module, method, inputs, 1, &y, 1, &error), RL_INVALID_ARGUMENT,
              "got 1 inputs, the method takes 2");
  CHECK_FAILS(rl_module_run(module, method, NULL, 2, &y, 1, &error), RL_INVALID_ARGUMENT, "NULL");
  inputs[1].dtype = RL_FLOAT64;
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_INVALID_ARGUMENT,
              "input 1: got float64, the method takes float32");
  inputs[1].dtype = 99;
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_INVALID_ARGUMENT,
              "no such dtype");
  inputs[1] = rl_tensor(x, RL_FLOAT32, others, 2);
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_NOT_SUPPORTED,
              "size 0 is 3, the method takes 2");
  inputs[1] = rl_tensor(x, RL_FLOAT32, sizes, 2);
  inputs[1].nbytes = 20;
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_INVALID_ARGUMENT,
              "beyond its nbytes");
  inputs[1].nbytes = 24;
  inputs[1].kind = RL_INT;
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_INVALID_ARGUMENT,
              "takes a Tensor");
  inputs[1].kind = RL_TENSOR;
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 2, &error), RL_INVALID_ARGUMENT,
              "2 outputs are wanted");
  CHECK_OK(rl_module_run(module, method, inputs, 2, NULL, 0, NULL));
  CHECK_OK(rl_module_close(module, &error));
  CHECK_FAILS(rl_module_close(module, &error), RL_INVALID_STATE, "was closed");
  CHECK_FAILS(rl_module_run(module, method, inputs, 2, &y, 1, &error), RL_INVALID_STATE,
              "was closed");
  CHECK_FAILS(rl_module_cancel(module, &error), RL_INVALID_STATE, "was closed");
  CHECK_FAILS(rl_module_load((rl_module*)x, method, &error), RL_INVALID_STATE, "never was one");
  CHECK_FAILS(rl_module_load(NULL, method, &error), RL_INVALID_ARGUMENT, "NULL");
  CHECK_OK(rl_module_close(NULL, &error));
}

static float count(rl_module* module) {
  const float one[2] = {1, 1};
  const int32_t sizes[] = {2};
  const rl_value_v1 x = rl_tensor(one, RL_FLOAT32, sizes, 1);
  rl_value_v1 y = RL_VALUE_INIT;
  CHECK_OK(rl_module_run(module, "forward", &x, 1, &y, 1, &error));
  return ((const float*)y.data)[0];
}

static void test_state(const char* folder) {
  rl_module *module = open_golden(folder, "counter"), *other = NULL;
  const float first = count(module), second = count(module);
  CHECK(first != second);
  unsigned char saved[4096];
  size_t bytes = 0;
  CHECK_OK(rl_module_snapshot(module, NULL, 0, &bytes, &error));
  CHECK(bytes > 0 && bytes <= sizeof saved);
  CHECK_FAILS(rl_module_snapshot(module, saved, bytes - 1, NULL, &error), RL_INVALID_ARGUMENT, "");
  CHECK_OK(rl_module_snapshot(module, saved, sizeof saved, NULL, &error));
  const float third = count(module);
  CHECK_OK(rl_module_restore(module, saved, bytes, &error));
  CHECK_OK(rl_module_fork(module, &other, &error));
  CHECK(count(module) == third && count(other) == third);
  CHECK_OK(rl_module_reset_state(module, &error));
  CHECK(count(module) == first);
  CHECK_FAILS(rl_module_restore(module, saved, 3, &error), RL_INVALID_ARGUMENT, "");
  uint32_t n = 0;
  CHECK_OK(rl_module_state_count(module, &n, &error));
  CHECK(n == 1);
  rl_state_info info = {.size = sizeof info};
  CHECK_OK(rl_module_state(module, 0, &info, &error));
  CHECK(info.nbytes > 0 && info.data != NULL);
  CHECK_FAILS(rl_module_state(module, 1, &info, &error), RL_INVALID_ARGUMENT, "no state 1");
  CHECK_OK(rl_module_close(module, &error));
  CHECK_OK(rl_module_close(other, &error));
}

static int32_t add_up(void* userdata, const void* data, size_t bytes) {
  (void)data;
  *(size_t*)userdata += bytes;
  return 0;
}

static int32_t refuse(void* userdata, const void* data, size_t bytes) {
  (void)userdata, (void)data, (void)bytes;
  return 1;
}

static void test_trace(const char* folder) {
  rl_module_options options = {.size = sizeof options, .reports_failures = 1};
  rl_module* module = NULL;
  CHECK_OK(rl_module_open(golden(folder, "counter"), &options, &module, &error));
  size_t bytes = 0, values = 0;
  CHECK_FAILS(rl_module_trace_write(module, add_up, &bytes, &error), RL_INVALID_STATE, "start");
  rl_trace_options trace = {.size = sizeof trace, .values = RL_TRACE_OUTPUTS};
  CHECK_OK(rl_module_trace_start(module, &trace, &error));
  count(module);
  CHECK_OK(rl_module_trace_stop(module, &error));
  CHECK_OK(rl_module_trace_write(module, add_up, &bytes, &error));
  CHECK_OK(rl_module_trace_values(module, add_up, &values, &error));
  CHECK(bytes > 100 && values == 8);
  CHECK_FAILS(rl_module_trace_write(module, refuse, NULL, &error), RL_ACCESS_FAILED, "");
  CHECK_FAILS(rl_module_trace_save(module, "no/such/folder/x", &error), RL_ACCESS_FAILED, "written");
  trace.values = 7;
  CHECK_FAILS(rl_module_trace_start(module, &trace, &error), RL_INVALID_ARGUMENT, "values is 7");

  rl_bytes_v1 report = {NULL, 0};
  CHECK_OK(rl_module_failure_report(module, &report, &error));
  CHECK(report.size == 0);
  CHECK_FAILS(rl_module_run(module, "forward", NULL, 0, NULL, 0, &error), RL_INVALID_ARGUMENT, "");
  CHECK_OK(rl_module_failure_report(module, &report, &error));
  CHECK(report.size > 1000 && memcmp(report.data, "RLFR", 4) == 0);
  CHECK_OK(rl_module_close(module, &error));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  test_versions();
  test_run(argv[1]);
  test_loading(argv[1]);
  test_misuse(argv[1]);
  test_state(argv[1]);
  test_trace(argv[1]);
  return g_failures == 0 ? 0 : 1;
}
