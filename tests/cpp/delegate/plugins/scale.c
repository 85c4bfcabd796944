/* A backend in plain C, for tests of separately built libraries: y = factor * x + bias over
 * float32. The payload is "SCL1" and the factor; the bias is an option or named data. A negative
 * input fails at the place "mul". */
#include <string.h>

#include "rl_backend_v1.h"

typedef struct {
  float factor;
  float bias;
  long calls;
} Scale;

static rl_text_v1 text(const char* words) {
  rl_text_v1 made = {words, strlen(words)};
  return made;
}

static int32_t init(void* self, const rl_init_v1* in, void** handle) {
  const rl_host_v1* host = in->host;
  (void)self;
  if (in->payload.size != 8 || memcmp(in->payload.data, "SCL1", 4) != 0) {
    host->explain(in->context, text("the payload is not 'SCL1' and a factor"));
    host->fail_at_number(in->context, 7);
    return RL_DELEGATE_INVALID_COMPATIBILITY;
  }
  Scale* scale = host->allocate(in->context, sizeof(Scale), 16);
  if (scale == NULL) return RL_DELEGATE_MEMORY_ALLOCATION_FAILED;
  memset(scale, 0, sizeof(*scale));
  memcpy(&scale->factor, (const char*)in->payload.data + 4, 4);
  rl_option_v1 option;
  memset(&option, 0, sizeof(option));
  option.size = sizeof(option);
  if (host->option(in->context, text("bias"), &option) == RL_OK) {
    if (option.kind != RL_INT) {
      host->explain(in->context, text("bias is an integer"));
      return RL_INVALID_ARGUMENT;
    }
    scale->bias = (float)option.i;
  }
  rl_bytes_v1 data;
  if (host->named_data(in->context, text("bias"), &data) == RL_OK && data.size == 4) {
    memcpy(&scale->bias, data.data, 4);
  }
  for (uint32_t i = 0; i < in->n_specs; ++i) {
    if (in->specs[i].key.size == 5 && memcmp(in->specs[i].key.data, "twice", 5) == 0) {
      scale->factor *= 2;
    }
  }
  host->event(in->context, text("init"), 0, 0, 1);
  host->release_payload(in->context);
  *handle = scale;
  return RL_OK;
}

/* The results are also the values of its two places. */
static int32_t tell_results(const rl_call_v1* call, const rl_value_v1* y) {
  const rl_host_v1* host = call->host;
  const rl_bytes_v1 data = {y->data, y->nbytes};
  int32_t code = RL_OK;
  if (host->wants_value(call->context, text("mul"), 0)) {
    code = host->tell_value(call->context, text("mul"), 0, y->dtype, y->sizes, y->rank, data);
  }
  if (code != RL_OK) return code;
  return host->tell_value(call->context, text(""), 7, y->dtype, y->sizes, y->rank, data);
}

static int32_t execute(void* self, void* handle, const rl_call_v1* call) {
  const rl_host_v1* host = call->host;
  Scale* scale = handle;
  rl_value_v1 x;
  rl_value_v1 y;
  size_t i;
  (void)self;
  memset(&x, 0, sizeof(x));
  memset(&y, 0, sizeof(y));
  x.size = y.size = sizeof(x);
  if (call->n_inputs != 1 || call->n_args != 2) return 99; /* no code of the interface */
  if (host->value(call->context, 0, &x) != RL_OK || x.kind != RL_TENSOR || x.dtype != 6) {
    return RL_INVALID_ARGUMENT;
  }
  if (host->resize(call->context, 1, x.sizes, x.rank) != RL_OK) return RL_NOT_SUPPORTED;
  if (host->value(call->context, 1, &y) != RL_OK || y.nbytes != x.nbytes) return RL_INTERNAL;
  const uint64_t start = call->is_traced ? host->now_ns() : 0;
  for (i = 0; i < x.nbytes / sizeof(float); ++i) {
    const float value = ((const float*)x.data)[i];
    if (value < 0) {
      host->fail_at_text(call->context, text("mul"));
      host->explain(call->context, text("an element is negative"));
      return RL_INVALID_ARGUMENT;
    }
    ((float*)y.data)[i] = scale->factor * value + scale->bias;
  }
#ifdef WRITES_PAST_ITS_OUTPUT
  ((float*)y.data)[y.nbytes / sizeof(float)] = 1;
#endif
  if (call->is_traced) {
    const rl_bytes_v1 told = {&scale->factor, sizeof scale->factor};
    host->event_with(call->context, text("mul"), 0, start, host->now_ns(), told);
    host->event(call->context, text(""), 7, start, host->now_ns());
  }
  ++scale->calls;
  return call->is_traced ? tell_results(call, &y) : RL_OK;
}

static void destroy(void* self, void* handle) {
  (void)handle;
  ++*(long*)self; /* how many delegates are gone */
}

static long destroyed;
#ifndef SCALE_VERSION
#define SCALE_VERSION RL_BACKEND_V1_VERSION
#endif
#ifndef SCALE_ID
#define SCALE_ID "Scale"
#endif
static const rl_backend_v1 kScale = {
    SCALE_VERSION, sizeof(rl_backend_v1), SCALE_ID, &destroyed, NULL, init, execute, destroy};

const rl_backend_v1* rl_get_backend_v1(uint32_t index);
const rl_backend_v1* rl_get_backend_v1(uint32_t index) { return index == 0 ? &kScale : NULL; }
