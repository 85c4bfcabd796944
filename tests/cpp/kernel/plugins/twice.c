/* A library of kernels in plain C, for tests: acme::twice.out(Tensor x, *, Tensor(a!) out) for any
 * dtype whose elements have 4 bytes, which says so, and for float32 matrices by rows. */
#include <string.h>

#include "rl_kernel_v1.h"

static rl_text_v1 text(const char* words) {
  rl_text_v1 made = {words, strlen(words)};
  return made;
}

static void twice_run(void* data, int64_t begin, int64_t end) {
  float* const* arrays = data;
  for (; begin < end; ++begin) arrays[1][begin] = 2 * arrays[0][begin];
}

static int32_t twice(void* self, const rl_kernel_call_v1* call) {
  const rl_kernel_host_v1* host = call->host;
  rl_value_v1 x, out;
  (void)self;
  memset(&x, 0, sizeof(x));
  memset(&out, 0, sizeof(out));
  x.size = out.size = sizeof(x);
  if (host->value(call->context, 0, &x) != RL_OK) return RL_INTERNAL;
  const int32_t code = host->resize(call->context, 1, 0, x.sizes, x.rank);
  if (code != RL_OK) return code;
  if (host->value(call->context, 1, &out) != RL_OK) return RL_INTERNAL;
  float* arrays[] = {x.data, out.data};
  host->parallel(call->context, (int64_t)(x.nbytes / sizeof(float)), 1 << 12, twice_run, arrays);
  return RL_OK;
}

static int32_t refuse(void* self, const rl_kernel_call_v1* call) {
  (void)self;
  call->host->explain(call->context, text("x must be a float32 matrix by rows"));
  return RL_NOT_SUPPORTED;
}

static const rl_kernel_v1 kernels[] = {
    {RL_KERNEL_V1_VERSION, sizeof(rl_kernel_v1), "acme::twice.out", "tw=", NULL, NULL, refuse, 0},
    {RL_KERNEL_V1_VERSION, sizeof(rl_kernel_v1), "acme::twice.out", "tw=", "v1/6;0,1|6;0,1", NULL,
     twice, 0},
};

const rl_kernel_v1* rl_get_kernel_v1(uint32_t index) {
  return index < sizeof(kernels) / sizeof(kernels[0]) ? &kernels[index] : NULL;
}
