/* Modules: opening them, and what they are. */
#include "support.h"

/* ---- opening ------------------------------------------------------------------------------- */

typedef struct opening {
  task t;
  char* path;      /* or: */
  memory* program; /* */
  char* data_path;
  text_list backends;
  text_list kernels;
  rl_module_options options;
  handle* made;
} opening;

static void open_module(task* t) {
  opening* o = (opening*)t;
  rl_module* module = NULL;
  t->status = o->path != NULL ? rl_module_open(o->path, &o->options, &module, &t->error)
                              : rl_module_open_memory(o->program->data, o->program->bytes,
                                                      &o->options, &module, &t->error);
  if (t->status != RL_OK) return;
  o->made = handle_new(MODULE, module, o->program);
  if (o->made == NULL) t->status = RL_MEMORY_ALLOCATION_FAILED;
}

static void release_opening(napi_env env, task* t) {
  opening* o = (opening*)t;
  (void)env;
  free(o->path);
  free(o->data_path);
  memory_drop(o->program);
  free_texts(&o->backends);
  free_texts(&o->kernels);
  handle_drop(o->made);
}

static void set_value_of_export(napi_env env, napi_value object, const rl_value_info* info) {
  napi_value value = NULL;
  if (info->kind == RL_STRING) {
    set_text(env, object, "value", info->text);
  } else if (info->kind == RL_DOUBLE) {
    set_number(env, object, "value", info->d);
  } else if (info->kind == RL_BOOL && napi_get_boolean(env, info->i != 0, &value) == napi_ok) {
    set_value(env, object, "value", value);
  } else if (info->kind == RL_INT) {
    const int64_t numbers[] = {info->i, info->min_int, info->max_int};
    static const char* const names[] = {"value", "least", "most"};
    for (int i = 0; i < 3; ++i) {
      if (napi_create_bigint_int64(env, numbers[i], &value) != napi_ok) throw_napi(env);
      set_value(env, object, names[i], value);
    }
  }
}

static napi_value value_info(napi_env env, const rl_value_info* info) {
  napi_value object = new_object(env);
  set_text(env, object, "name", info->name);
  set_number(env, object, "kind", info->kind);
  if (info->kind == RL_TENSOR) {
    set_number(env, object, "dtype", info->dtype);
    set_numbers(env, object, "minSizes", info->min_sizes, info->rank);
    set_numbers(env, object, "maxSizes", info->max_sizes, info->rank);
    set_numbers(env, object, "symbols", (const int32_t*)info->symbols, info->rank);
    int32_t order[RL_MAX_RANK];
    for (uint32_t k = 0; k < info->rank; ++k) order[k] = info->dim_order[k];
    set_numbers(env, object, "dimOrder", order, info->rank);
    set_whole(env, object, "nbytes", info->nbytes);
    set_number(env, object, "isPlanned", info->is_planned);
  } else {
    set_number(env, object, "isFixed", info->is_fixed);
    set_value_of_export(env, object, info);
  }
  return object;
}

/* The inputs or the outputs of a method; NULL with an exception. */
static napi_value describe_values(napi_env env, rl_module* module, const char* method,
                                  uint32_t count, bool is_input) {
  rl_error error = RL_ERROR_INIT;
  napi_value array = new_array(env);
  for (uint32_t i = 0; array != NULL && i < count; ++i) {
    rl_value_info info = {.size = sizeof info};
    const rl_status status = is_input ? rl_module_describe_input(module, method, i, &info, &error)
                                      : rl_module_describe_output(module, method, i, &info, &error);
    if (status != RL_OK) return throw_status(env, status, &error);
    napi_value object = value_info(env, &info);
    if (has_exception(env)) return NULL;
    if (napi_set_element(env, array, i, object) != napi_ok) return throw_napi(env);
  }
  return array;
}

/* What the inputs of a method have to do with each other, as texts; NULL with an exception. */
static napi_value describe_relations(napi_env env, rl_module* module, const char* method) {
  rl_error error = RL_ERROR_INIT;
  uint32_t count = 0;
  rl_status status = rl_module_relation_count(module, method, &count, &error);
  napi_value array = new_array(env);
  for (uint32_t i = 0; status == RL_OK && !has_exception(env) && i < count; ++i) {
    rl_text_v1 text = {NULL, 0};
    napi_value value = NULL;
    status = rl_module_relation(module, method, i, &text, &error);
    if (status != RL_OK) break;
    if (napi_create_string_utf8(env, text.data, text.size, &value) != napi_ok ||
        napi_set_element(env, array, i, value) != napi_ok) {
      return throw_napi(env);
    }
  }
  return status == RL_OK ? array : throw_status(env, status, &error);
}

static napi_value describe_method(napi_env env, rl_module* module, uint32_t index) {
  rl_error error = RL_ERROR_INIT;
  rl_text_v1 name = {NULL, 0};
  rl_method_info info = {.size = sizeof info};
  rl_status status = rl_module_method_name(module, index, &name, &error);
  char* method = status == RL_OK ? calloc(name.size + 1, 1) : NULL;
  if (status == RL_OK && method == NULL) return throw_no_memory(env);
  if (method != NULL) {
    memcpy(method, name.data, name.size);
    status = rl_module_describe_method(module, method, &info, &error);
  }
  if (status != RL_OK) {
    free(method);
    return throw_status(env, status, &error);
  }
  napi_value object = new_object(env);
  set_text(env, object, "name", name);
  set_whole(env, object, "arenas", info.arenas);
  set_whole(env, object, "sharedArenas", info.shared_arenas);
  set_whole(env, object, "structures", info.structures);
  set_whole(env, object, "outputBytes", info.outputs);
  set_whole(env, object, "scratch", info.scratch);
  set_whole(env, object, "instructions", info.instructions);
  set_value(env, object, "inputs", describe_values(env, module, method, info.n_inputs, true));
  if (!has_exception(env)) {
    set_value(env, object, "outputs", describe_values(env, module, method, info.n_outputs, false));
  }
  if (!has_exception(env)) {
    set_value(env, object, "relations", describe_relations(env, module, method));
  }
  free(method);
  return has_exception(env) ? NULL : object;
}

/* {handle, methods}. */
static napi_value opened(napi_env env, task* t) {
  opening* o = (opening*)t;
  rl_error error = RL_ERROR_INIT;
  rl_module_info info = {.size = sizeof info};
  rl_module* module = module_of(o->made);
  const rl_status status = rl_module_describe(module, &info, &error);
  if (status != RL_OK) return throw_status(env, status, &error);
  napi_value object = new_object(env), methods = new_array(env);
  for (uint32_t i = 0; i < info.n_methods && !has_exception(env); ++i) {
    napi_value method = describe_method(env, module, i);
    if (method == NULL) return NULL;
    if (napi_set_element(env, methods, i, method) != napi_ok) return throw_napi(env);
  }
  set_value(env, object, "methods", methods);
  set_number(env, object, "threads", info.threads);
  set_value(env, object, "handle", handle_value(env, handle_hold(o->made)));
  return object;
}

/* openModule({path or program, ...options}) */
static napi_value js_open_module(napi_env env, napi_callback_info info) {
  napi_value from;
  if (!read_arguments(env, info, 1, &from)) return NULL;
  opening* o = task_new(env, sizeof *o, NULL);
  if (o == NULL) return NULL;
  o->t.execute = open_module;
  o->t.make = opened;
  o->t.release = release_opening;
  o->options.size = sizeof o->options;
  o->options.threads = (uint32_t)get_whole(env, from, "threads");
  o->options.memory_limit = get_whole(env, from, "memoryLimit");
  o->options.scratch_bytes = get_whole(env, from, "scratchBytes");
  o->options.max_instructions = get_whole(env, from, "maxInstructions");
  o->options.reads_file = (uint32_t)get_whole(env, from, "readsFile");
  o->options.guards_file = (uint32_t)get_whole(env, from, "guardsFile");
  o->options.reports_failures = (uint32_t)get_whole(env, from, "reportsFailures");
  o->options.data_path = o->data_path = get_text(env, from, "dataPath");
  o->path = get_text(env, from, "path");
  napi_value program = get_field(env, from, "program");
  if (program != NULL) o->program = memory_of_bytes(env, program);
  if (has_exception(env) || !get_texts(env, from, "backends", &o->backends) ||
      !get_texts(env, from, "kernels", &o->kernels)) {
    return task_abandon(env, &o->t);
  }
  o->options.backend_libraries = (const char* const*)o->backends.items;
  o->options.n_backend_libraries = o->backends.count;
  o->options.kernel_libraries = (const char* const*)o->kernels.items;
  o->options.n_kernel_libraries = o->kernels.count;
  return task_start(env, &o->t);
}

/* ---- what other threads may call while the module is in use ---------------------------------- */

/* cancelRun(handle) */
static napi_value js_cancel_run(napi_env env, napi_callback_info info) {
  napi_value value;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  handle* h = handle_of(env, value);
  if (h != NULL) rl_module_cancel(module_of(h), NULL);
  return NULL;
}

const function module_functions[] = {
    {"openModule", js_open_module}, {"cancelRun", js_cancel_run}, {NULL, NULL}};
