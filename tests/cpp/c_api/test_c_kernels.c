/* Kernels in plain C that are linked in: a program calls them, and those that cannot be used are
 * refused. The golden program calls aten::add.out, for which the runtime has a kernel without a
 * key, so that one with a key is called in its place. */
#include "check.h"

static rl_error error = RL_ERROR_INIT;
static int calls = 0;

/* out = x + y + *self */
static int32_t add_more(void* self, const rl_kernel_call_v1* call) {
  rl_value_v1 x = RL_VALUE_INIT, y = RL_VALUE_INIT, out = RL_VALUE_INIT;
  ++calls;
  CHECK(call->n_args == 4);
  CHECK(call->host->value(call->context, 0, &x) == RL_OK && x.dtype == RL_FLOAT32);
  CHECK(call->host->value(call->context, 1, &y) == RL_OK && y.rank == 2);
  if (call->host->resize(call->context, 3, 0, x.sizes, x.rank) != RL_OK) return RL_INTERNAL;
  CHECK(call->host->value(call->context, 3, &out) == RL_OK && out.nbytes == x.nbytes);
  for (size_t i = 0; i < x.nbytes / sizeof(float); ++i) {
    ((float*)out.data)[i] = ((float*)x.data)[i] + ((float*)y.data)[i] + *(float*)self;
  }
  return RL_OK;
}

static int32_t fails(void* self, const rl_kernel_call_v1* call) {
  const rl_text_v1 why = {"no luck", 7};
  (void)self;
  call->host->explain(call->context, why);
  return RL_OUT_OF_RESOURCES;
}

static float hundred = 100;
static const rl_kernel_v1 sound = {RL_KERNEL_V1_VERSION,
                                   sizeof(rl_kernel_v1),
                                   "aten::add.out",
                                   "ttsw=",
                                   "v1/6;0,1|6;0,1|6;0,1",
                                   &hundred,
                                   add_more,
                                   0};

static rl_status open_with(const char* folder, const rl_kernel_v1* first,
                           const rl_kernel_v1* second, rl_module** module) {
  const rl_kernel_v1* const kernels[] = {first, second};
  rl_module_options options = RL_MODULE_OPTIONS_INIT;
  options.kernels = kernels;
  options.n_kernels = second != NULL ? 2 : 1;
  return rl_module_open(golden(folder, "add"), &options, module, &error);
}

static rl_status run(rl_module* module, float* first) {
  static const float x[6] = {1, 2, 3, 4, 5, 6};
  const int32_t sizes[] = {2, 3};
  const rl_value_v1 inputs[2] = {rl_tensor(x, RL_FLOAT32, sizes, 2),
                                 rl_tensor(x, RL_FLOAT32, sizes, 2)};
  rl_value_v1 y = RL_VALUE_INIT;
  const rl_status status = rl_module_run(module, "forward", inputs, 2, &y, 1, &error);
  if (status == RL_OK) *first = ((const float*)y.data)[0];
  return status;
}

static void test_linked(const char* folder) {
  rl_module *module = NULL, *copy = NULL, *plain = NULL;
  float first = 0;
  CHECK_OK(open_with(folder, &sound, NULL, &module));
  CHECK_OK(run(module, &first));
  CHECK(first == 102 && calls == 1);
  CHECK_OK(rl_module_clone(module, &copy, &error));
  CHECK_OK(rl_module_close(module, &error));
  CHECK_OK(run(copy, &first)); /* clones have it, too */
  CHECK(first == 102 && calls == 2);
  CHECK_OK(rl_module_close(copy, &error));
  CHECK_OK(rl_module_open(golden(folder, "add"), NULL, &plain, &error));
  CHECK_OK(run(plain, &first)); /* and no other module has */
  CHECK(first == 2 && calls == 2);
  CHECK_OK(rl_module_close(plain, &error));
}

static void test_failure(const char* folder) {
  rl_kernel_v1 failing = sound;
  rl_module* module = NULL;
  float first = 0;
  failing.run = fails;
  CHECK_OK(open_with(folder, &failing, NULL, &module));
  CHECK_FAILS(run(module, &first), RL_OUT_OF_RESOURCES, "(aten::add.out): no luck");
  CHECK(error.instruction == 0);
  CHECK_OK(rl_module_close(module, &error));
}

static void test_refusals(const char* folder) {
  rl_module* module = NULL;
  float first = 0;
  rl_kernel_v1 other = sound;
  other.key = NULL;
  CHECK_FAILS(open_with(folder, &other, NULL, &module), RL_REGISTRATION_ALREADY_REGISTERED,
              "the kernel aten::add.out cannot be added: there is one of that name");
  CHECK_FAILS(open_with(folder, &sound, &sound, &module), RL_REGISTRATION_ALREADY_REGISTERED,
              "aten::add.out");
  other = sound;
  other.signature = "ttw";
  CHECK_FAILS(open_with(folder, &other, NULL, &module), RL_INVALID_ARGUMENT,
              "the signature of aten::add.out");
  other = sound;
  other.key = "6;0,1";
  CHECK_FAILS(open_with(folder, &other, NULL, &module), RL_INVALID_ARGUMENT,
              "the key of aten::add.out");
  other = sound;
  other.size = 16;
  CHECK_FAILS(open_with(folder, &other, NULL, &module), RL_INVALID_ARGUMENT, "has 16 bytes");
  other = sound;
  other.version = 9;
  CHECK_FAILS(open_with(folder, &other, NULL, &module), RL_INVALID_ARGUMENT, "of version 9");
  CHECK(module == NULL);
  other = sound;
  other.signature = "ttTw=";
  CHECK_OK(open_with(folder, &other, NULL, &module));
  CHECK_FAILS(run(module, &first), RL_INVALID_PROGRAM,
              "argument 2 is Int, but the operator takes a TensorList");
  CHECK_OK(rl_module_close(module, &error));
  rl_module_options options = RL_MODULE_OPTIONS_INIT;
  options.n_kernels = 1;
  CHECK_FAILS(rl_module_open(golden(folder, "add"), &options, &module, &error), RL_INVALID_ARGUMENT,
              "kernels is NULL");
  const rl_kernel_v1* const none[] = {NULL};
  options.kernels = none;
  CHECK_FAILS(rl_module_open(golden(folder, "add"), &options, &module, &error), RL_INVALID_ARGUMENT,
              "a kernel is NULL");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  test_linked(argv[1]);
  test_failure(argv[1]);
  test_refusals(argv[1]);
  return g_failures == 0 ? 0 : 1;
}
