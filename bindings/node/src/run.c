/* Runs of a method: values of JavaScript as inputs, outputs as values of JavaScript. */
#include "support.h"

/* An output, as it lies in the module or in memory of the caller. */
typedef struct output {
  rl_value_v1 value;
  int32_t sizes[RL_MAX_RANK];
  int32_t strides[RL_MAX_RANK];
  memory* copy; /* of a tensor that has no memory of the caller, by rows */
  char* text;
  view target; /* memory of the caller; without data: there is none */
} output;

typedef struct run {
  task t;
  char* method;
  bool measures; /* the module's memory, since this run may load the method */
  uint32_t n_inputs;
  uint32_t n_outputs;
  rl_value_v1* inputs;
  int32_t* sizes; /* of each input: RL_MAX_RANK sizes, then RL_MAX_RANK strides */
  char** texts;
  view* views;
  output* outputs;
  rl_value_v1* told; /* what the run says of its outputs */
} run;

static void release_run(napi_env env, task* t) {
  run* r = (run*)t;
  for (uint32_t i = 0; r->texts != NULL && i < r->n_inputs; ++i) free(r->texts[i]);
  for (uint32_t i = 0; r->views != NULL && i < r->n_inputs; ++i) view_close(env, &r->views[i]);
  for (uint32_t i = 0; r->outputs != NULL && i < r->n_outputs; ++i) {
    memory_drop(r->outputs[i].copy);
    free(r->outputs[i].text);
    view_close(env, &r->outputs[i].target);
  }
  free(r->method);
  free(r->inputs);
  free(r->sizes);
  free(r->texts);
  free(r->views);
  free(r->outputs);
  free(r->told);
}

/* ---- on the thread of the run -------------------------------------------------------------- */

static rl_status fail_memory(rl_error* error) {
  static const char text[] = "there is not enough memory left for the outputs";
  memcpy(error->text, text, sizeof text);
  return RL_MEMORY_ALLOCATION_FAILED;
}

static void copy_by_rows(const rl_value_v1* value, char* to) {
  int64_t count = 1, from = 0;
  int32_t at[RL_MAX_RANK] = {0};
  int64_t dense = 1;
  bool is_by_rows = true;
  for (uint32_t k = value->rank; k-- > 0;) {
    is_by_rows = is_by_rows && (value->sizes[k] == 1 || value->strides[k] == dense);
    dense *= value->sizes[k];
  }
  for (uint32_t k = 0; k < value->rank; ++k) count *= value->sizes[k];
  if (count == 0) return;
  const size_t bytes = value->nbytes / (size_t)count;
  if (is_by_rows) {
    memcpy(to, value->data, value->nbytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i, to += bytes) {
    memcpy(to, (const char*)value->data + from * (int64_t)bytes, bytes);
    for (uint32_t k = value->rank; k-- > 0;) {
      from += value->strides[k];
      if (++at[k] < value->sizes[k]) break;
      from -= (int64_t)value->strides[k] * value->sizes[k];
      at[k] = 0;
    }
  }
}

/* Takes what is lent until the method's next run. */
static rl_status take_output(output* o, const rl_value_v1* told, rl_error* error) {
  o->value = *told;
  if (told->kind == RL_STRING) {
    o->text = malloc(told->text.size + 1);
    if (o->text == NULL) return fail_memory(error);
    if (told->text.size > 0) memcpy(o->text, told->text.data, told->text.size);
    o->value.text.data = o->text;
  }
  if (told->kind != RL_TENSOR || told->rank > RL_MAX_RANK) return RL_OK;
  memcpy(o->sizes, told->sizes, told->rank * sizeof *o->sizes);
  memcpy(o->strides, told->strides, told->rank * sizeof *o->strides);
  if (o->target.data != NULL) return RL_OK;
  o->copy = memory_new(told->nbytes);
  if (o->copy == NULL) return fail_memory(error);
  copy_by_rows(told, o->copy->data);
  return RL_OK;
}

static rl_status set_targets(run* r, bool is_set) {
  rl_module* module = module_of(r->t.on);
  for (uint32_t i = 0; i < r->n_outputs; ++i) {
    const view* target = &r->outputs[i].target;
    if (target->data == NULL) continue;
    const rl_status status = is_set ? rl_module_set_output(module, r->method, i, target->data,
                                                           target->bytes, &r->t.error)
                                    : rl_module_set_output(module, r->method, i, NULL, 0, NULL);
    if (is_set && status != RL_OK) return status;
  }
  return RL_OK;
}

static void execute_run(task* t) {
  run* r = (run*)t;
  rl_module* module = module_of(t->on);
  t->status = set_targets(r, true);
  if (t->status == RL_OK) {
    t->status =
        rl_module_run(module, r->method, r->inputs, r->n_inputs, r->told, r->n_outputs, &t->error);
  }
  for (uint32_t i = 0; t->status == RL_OK && i < r->n_outputs; ++i) {
    t->status = take_output(&r->outputs[i], &r->told[i], &t->error);
  }
  /* The caller's memory is the caller's again. */
  set_targets(r, false);
  rl_module_info info = {.size = sizeof info};
  if (r->measures && rl_module_describe(module, &info, NULL) == RL_OK) {
    t->memory_in_use = info.memory_in_use;
  }
}

/* ---- on the main thread -------------------------------------------------------------------- */

static napi_value output_value(napi_env env, output* o) {
  napi_value object = new_object(env), number = NULL;
  const rl_value_v1* value = &o->value;
  set_number(env, object, "kind", value->kind);
  if (value->kind == RL_TENSOR) {
    set_number(env, object, "dtype", value->dtype);
    set_numbers(env, object, "sizes", o->sizes, value->rank);
    if (o->copy != NULL) {
      memory* m = o->copy;
      o->copy = NULL;
      set_value(env, object, "buffer", memory_buffer(env, m));
    } else {
      set_numbers(env, object, "strides", o->strides, value->rank);
    }
  } else if (value->kind == RL_STRING) {
    set_text(env, object, "value", value->text);
  } else if (value->kind == RL_DOUBLE) {
    set_number(env, object, "value", value->d);
  } else if (value->kind == RL_BOOL || value->kind == RL_INT) {
    if (napi_create_bigint_int64(env, value->i, &number) != napi_ok) throw_napi(env);
    set_value(env, object, "value", number);
  }
  return object;
}

static napi_value run_results(napi_env env, task* t) {
  run* r = (run*)t;
  napi_value results = new_array(env);
  for (uint32_t i = 0; i < r->n_outputs && !has_exception(env); ++i) {
    napi_value result = output_value(env, &r->outputs[i]);
    if (has_exception(env)) return NULL;
    if (napi_set_element(env, results, i, result) != napi_ok) return throw_napi(env);
  }
  return results;
}

static uint32_t read_numbers(napi_env env, napi_value object, const char* name, int32_t* to) {
  napi_value array = get_field(env, object, name);
  uint32_t count = 0;
  if (array == NULL || napi_get_array_length(env, array, &count) != napi_ok) return 0;
  for (uint32_t k = 0; k < count && k < RL_MAX_RANK; ++k) {
    napi_value number;
    if (napi_get_element(env, array, k, &number) != napi_ok) return 0;
    napi_get_value_int32(env, number, &to[k]);
  }
  return count;
}

/* An input is {kind} with what belongs to it: {data, dtype, sizes, strides}, or {value}. */
static bool read_input(napi_env env, run* r, uint32_t i, napi_value object) {
  rl_value_v1* value = &r->inputs[i];
  value->size = sizeof *value;
  value->kind = (uint32_t)get_whole(env, object, "kind");
  if (value->kind == RL_TENSOR) {
    int32_t* sizes = r->sizes + (size_t)i * RL_MAX_RANK * 2;
    napi_value array = get_field(env, object, "data");
    if (array == NULL || !view_open(env, array, false, &r->views[i])) return false;
    value->data = r->views[i].data;
    value->nbytes = r->views[i].bytes;
    value->dtype = (int32_t)get_whole(env, object, "dtype");
    value->rank = read_numbers(env, object, "sizes", sizes); /* beyond RL_MAX_RANK it is refused */
    value->sizes = sizes;
    if (read_numbers(env, object, "strides", sizes + RL_MAX_RANK) > 0) {
      value->strides = sizes + RL_MAX_RANK;
    }
  } else if (value->kind == RL_STRING) {
    r->texts[i] = read_text(env, get_field(env, object, "value"), &value->text.size);
    value->text.data = r->texts[i];
  } else if (value->kind == RL_DOUBLE) {
    value->d = get_real(env, object, "value");
  } else if (value->kind != RL_NONE) {
    value->i = (int64_t)get_whole(env, object, "value");
  }
  return !has_exception(env);
}

static bool read_run(napi_env env, run* r, napi_value inputs, napi_value targets) {
  const size_t n = (size_t)r->n_inputs + 1;
  r->inputs = calloc(n, sizeof *r->inputs);
  r->sizes = calloc(n, sizeof *r->sizes * RL_MAX_RANK * 2);
  r->texts = calloc(n, sizeof *r->texts);
  r->views = calloc(n, sizeof *r->views);
  r->outputs = calloc((size_t)r->n_outputs + 1, sizeof *r->outputs);
  r->told = calloc((size_t)r->n_outputs + 1, sizeof *r->told);
  if (!r->inputs || !r->sizes || !r->texts || !r->views || !r->outputs || !r->told) return false;
  for (uint32_t i = 0; i < r->n_inputs; ++i) {
    napi_value object;
    if (napi_get_element(env, inputs, i, &object) != napi_ok) return false;
    if (!read_input(env, r, i, object)) return false;
  }
  for (uint32_t i = 0; i < r->n_outputs; ++i) {
    napi_value array;
    napi_valuetype type;
    r->told[i].size = sizeof *r->told;
    if (napi_get_element(env, targets, i, &array) != napi_ok ||
        napi_typeof(env, array, &type) != napi_ok) {
      return false;
    }
    if (type == napi_object && !view_open(env, array, true, &r->outputs[i].target)) return false;
  }
  return true;
}

/* run(handle, method, inputs, targets, nOutputs, measures): `targets` has typed arrays for outputs
 * whose memory is the caller's. */
static napi_value js_run(napi_env env, napi_callback_info info) {
  napi_value arguments[6];
  if (!read_arguments(env, info, 6, arguments)) return NULL;
  handle* h = handle_of(env, arguments[0]);
  run* r = h != NULL ? task_new(env, sizeof *r, h) : NULL;
  if (r == NULL) return NULL;
  r->t.execute = execute_run;
  r->t.make = run_results;
  r->t.release = release_run;
  r->method = read_text(env, arguments[1], NULL);
  if (r->method == NULL || napi_get_array_length(env, arguments[2], &r->n_inputs) != napi_ok ||
      napi_get_value_uint32(env, arguments[4], &r->n_outputs) != napi_ok ||
      napi_get_value_bool(env, arguments[5], &r->measures) != napi_ok ||
      !read_run(env, r, arguments[2], arguments[3])) {
    return task_abandon(env, &r->t);
  }
  return task_start(env, &r->t);
}

const function run_functions[] = {{"run", js_run}, {NULL, NULL}};
