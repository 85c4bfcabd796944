/* The runtime half, in plain C: it knows nothing of the runtime but rl_backend_v1.h. preprocess.py
 * says what the payload is. Nothing is allocated but through the host, nothing is written but the
 * outputs. */
#include <string.h>

#include "rl_backend_v1.h"

enum { MAGIC = 0x4C454B53, VERSION = 1, HEAD = 6, FLOAT32 = 6 };
enum { ADD = 0, MUL = 1 };

typedef struct {
  uint32_t op, left, right, most;
} Instruction;

typedef struct {
  const float* data;
  size_t count;
  size_t like; /* the argument that has the same sizes; NO_ARGUMENT for a constant */
} Value;
#define NO_ARGUMENT SIZE_MAX

typedef struct {
  uint32_t n_inputs, n_constants, n_code, n_outputs;
  Instruction* code;
  uint32_t* outputs;
  Value* values;
  float** results; /* memory for each instruction */
} Program;

static rl_text_v1 text(const char* words) {
  rl_text_v1 made;
  made.data = words;
  made.size = strlen(words);
  return made;
}

static int32_t refuse(const rl_init_v1* in, const char* why) {
  in->host->explain(in->context, text(why));
  return RL_DELEGATE_INVALID_COMPATIBILITY;
}

static int32_t fail(const rl_call_v1* call, const char* why) {
  call->host->explain(call->context, text(why));
  return RL_INVALID_ARGUMENT;
}

/* Memory for as long as the method lives; NULL if there is not so much. */
static void* take(const rl_init_v1* in, uint64_t count, size_t size) {
  if (count > SIZE_MAX / size) return NULL;
  return in->host->allocate(in->context, (size_t)count * size, 16);
}

/* Where each constant lies: `keys` has their names one after the other, of these lengths. */
static int32_t find_constants(const rl_init_v1* in, Program* program, const uint8_t* lengths,
                              const char* keys, size_t left) {
  uint32_t i;
  for (i = 0; i < program->n_constants; ++i) {
    Value* value = &program->values[program->n_inputs + i];
    uint32_t length;
    rl_bytes_v1 data;
    rl_text_v1 key;
    memcpy(&length, lengths + (size_t)i * 4, 4);
    if (length > left) return refuse(in, "the payload is cut");
    key.data = keys;
    key.size = length;
    if (in->host->named_data(in->context, key, &data) != RL_OK) {
      return refuse(in, "the program lacks the data of a constant");
    }
    if ((uintptr_t)data.data % sizeof(float) != 0) return refuse(in, "a constant is not aligned");
    value->data = data.data;
    value->count = data.size / sizeof(float);
    value->like = NO_ARGUMENT;
    keys += length;
    left -= length;
  }
  return left == 0 ? RL_OK : refuse(in, "the payload is damaged");
}

static int32_t check_code(const rl_init_v1* in, Program* program) {
  const uint64_t first = (uint64_t)program->n_inputs + program->n_constants;
  uint32_t i;
  for (i = 0; i < program->n_code; ++i) {
    const Instruction* at = &program->code[i];
    if (at->op > MUL || at->left >= first + i || at->right >= first + i) {
      in->host->fail_at_number(in->context, i);
      return refuse(in, "the payload is damaged: an instruction is none");
    }
    program->results[i] = take(in, at->most, sizeof(float));
    if (program->results[i] == NULL) return RL_DELEGATE_MEMORY_ALLOCATION_FAILED;
  }
  for (i = 0; i < program->n_outputs; ++i) {
    if (program->outputs[i] >= first + program->n_code) {
      return refuse(in, "the payload is damaged: an output is a value that is not there");
    }
  }
  return RL_OK;
}

static int32_t init(void* self, const rl_init_v1* in, void** handle) {
  const uint8_t* payload = in->payload.data;
  uint32_t head[HEAD];
  uint64_t n_words;
  Program* program;
  const uint8_t* at;
  int32_t status;
  (void)self;
  if (in->payload.size < sizeof(head)) return refuse(in, "the payload is cut");
  memcpy(head, payload, sizeof(head));
  if (head[0] != MAGIC || head[1] != VERSION) {
    return refuse(in, "the payload is none of this version: export the program again");
  }
  n_words = HEAD + (uint64_t)head[3] + 4 * (uint64_t)head[4] + head[5];
  if (n_words > in->payload.size / 4) return refuse(in, "the payload is cut");
  program = take(in, 1, sizeof(*program));
  if (program == NULL) return RL_DELEGATE_MEMORY_ALLOCATION_FAILED;
  program->n_inputs = head[2];
  program->n_constants = head[3];
  program->n_code = head[4];
  program->n_outputs = head[5];
  program->code = take(in, head[4], sizeof(Instruction));
  program->outputs = take(in, head[5], sizeof(uint32_t));
  program->values = take(in, (uint64_t)head[2] + head[3] + head[4], sizeof(Value));
  program->results = take(in, head[4], sizeof(float*));
  if (!program->code || !program->outputs || !program->values || !program->results) {
    return RL_DELEGATE_MEMORY_ALLOCATION_FAILED;
  }
  at = payload + sizeof(head) + 4 * (size_t)head[3];
  memcpy(program->code, at, head[4] * sizeof(Instruction));
  at += head[4] * sizeof(Instruction);
  memcpy(program->outputs, at, head[5] * sizeof(uint32_t));
  at += head[5] * sizeof(uint32_t);
  status = find_constants(in, program, payload + sizeof(head), (const char*)at,
                          in->payload.size - 4 * (size_t)n_words);
  if (status == RL_OK) status = check_code(in, program);
  in->host->release_payload(in->context); /* all of it was copied */
  *handle = program;
  return status;
}

/* False if the sizes of the operands differ, or are more than there is memory for. */
static int run(Program* program, uint32_t i) {
  const Instruction* at = &program->code[i];
  const Value* x = &program->values[at->left];
  const Value* y = &program->values[at->right];
  Value* made = &program->values[program->n_inputs + program->n_constants + i];
  float* out = program->results[i];
  size_t k;
  if (x->count != y->count || x->count > at->most) return 0;
  for (k = 0; k < x->count; ++k) {
    out[k] = at->op == ADD ? x->data[k] + y->data[k] : x->data[k] * y->data[k];
  }
  made->data = out;
  made->count = x->count;
  made->like = x->like != NO_ARGUMENT ? x->like : y->like;
  return 1;
}

static int32_t write_output(const rl_call_v1* call, const Value* value, size_t index) {
  const rl_host_v1* host = call->host;
  rl_value_v1 like, out;
  int32_t status;
  memset(&like, 0, sizeof(like));
  memset(&out, 0, sizeof(out));
  like.size = out.size = sizeof(out);
  if (value->like == NO_ARGUMENT) return fail(call, "a result is a constant");
  status = host->value(call->context, value->like, &like);
  if (status == RL_OK) status = host->resize(call->context, index, like.sizes, like.rank);
  if (status == RL_OK) status = host->value(call->context, index, &out);
  if (status != RL_OK) return status;
  if (out.kind != RL_TENSOR || out.dtype != FLOAT32 || out.nbytes != value->count * 4) {
    return fail(call, "an output is no float32 tensor of the result's sizes");
  }
  if (out.nbytes > 0) memmove(out.data, value->data, out.nbytes);
  return RL_OK;
}

static int32_t execute(void* self, void* handle, const rl_call_v1* call) {
  Program* program = handle;
  uint32_t i;
  (void)self;
  if (call->n_args != (size_t)program->n_inputs + program->n_outputs) {
    return fail(call, "the number of arguments is not the payload's");
  }
  for (i = 0; i < program->n_inputs; ++i) {
    rl_value_v1 value;
    memset(&value, 0, sizeof(value));
    value.size = sizeof(value);
    if (call->host->value(call->context, i, &value) != RL_OK || value.kind != RL_TENSOR ||
        value.dtype != FLOAT32) {
      return fail(call, "an input is no float32 tensor");
    }
    program->values[i].data = value.data;
    program->values[i].count = value.nbytes / sizeof(float);
    program->values[i].like = i;
  }
  for (i = 0; i < program->n_code; ++i) {
    if (run(program, i)) continue;
    call->host->fail_at_number(call->context, i); /* leads to the lines of Python */
    return fail(call, "the sizes of an instruction's operands differ");
  }
  for (i = 0; i < program->n_outputs; ++i) {
    const int32_t status =
        write_output(call, &program->values[program->outputs[i]], (size_t)program->n_inputs + i);
    if (status != RL_OK) return status;
  }
  return RL_OK;
}

static const rl_backend_v1 kBackend = {RL_BACKEND_V1_VERSION,
                                       sizeof(rl_backend_v1),
                                       "SkeletonBackend",
                                       NULL,
                                       NULL,
                                       init,
                                       execute,
                                       NULL};

const rl_backend_v1* rl_get_backend_v1(uint32_t index);
const rl_backend_v1* rl_get_backend_v1(uint32_t index) { return index == 0 ? &kBackend : NULL; }
