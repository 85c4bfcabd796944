/* A library whose kernel is of a version that this runtime does not know. */
#include "rl_kernel_v1.h"

static int32_t run(void* self, const rl_kernel_call_v1* call) {
  (void)self;
  (void)call;
  return RL_OK;
}

static const rl_kernel_v1 kernel = {RL_KERNEL_V1_VERSION + 1,
                                    sizeof(rl_kernel_v1),
                                    "compat_shared::plus.out",
                                    "tdw=",
                                    NULL,
                                    NULL,
                                    run,
                                    0};

const rl_kernel_v1* rl_get_kernel_v1(uint32_t index) { return index == 0 ? &kernel : NULL; }
const rl_kernel_v1* rl_get_loaded_kernel_v1(uint32_t index) { return rl_get_kernel_v1(index); }
