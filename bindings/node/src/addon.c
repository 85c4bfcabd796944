/* The addon: its functions, and its end. */
#include "support.h"

addon* addon_of(napi_env env) {
  void* a = NULL;
  napi_get_instance_data(env, &a);
  return a;
}

/* Tasks and generations have ended by now. */
static void free_addon(napi_env env, void* data, void* hint) {
  (void)env;
  (void)hint;
  free(data);
}

/* stop(): the process or the worker is about to end, which waits for the threads of libuv's pool
 * and not for others. */
static napi_value js_stop(napi_env env, napi_callback_info info) {
  addon* a = addon_of(env);
  (void)info;
  atomic_store(&a->stopping, true);
  for (task* t = a->tasks; t != NULL; t = t->next) {
    if (t->on != NULL && t->on->kind == MODULE) rl_module_cancel(module_of(t->on), NULL);
  }
  stop_generations(a);
  return NULL;
}

/* newBuffer(bytes): an ArrayBuffer of zeros which runs read and write without a copy */
static napi_value js_new_buffer(napi_env env, napi_callback_info info) {
  napi_value value;
  double bytes = 0;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  if (napi_get_value_double(env, value, &bytes) != napi_ok) return throw_napi(env);
  memory* m = memory_new((size_t)bytes);
  if (m == NULL) return throw_no_memory(env);
  memset(m->data, 0, m->bytes);
  return memory_buffer(env, m);
}

static napi_value js_version(napi_env env, napi_callback_info info) {
  napi_value value = NULL;
  (void)info;
  if (napi_create_string_utf8(env, rl_version(), NAPI_AUTO_LENGTH, &value) != napi_ok) {
    return throw_napi(env);
  }
  return value;
}

/* statusName(code) */
static napi_value js_status_name(napi_env env, napi_callback_info info) {
  napi_value value = NULL;
  int32_t code = 0;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  napi_get_value_int32(env, value, &code);
  if (napi_create_string_utf8(env, rl_status_name(code), NAPI_AUTO_LENGTH, &value) != napi_ok) {
    return throw_napi(env);
  }
  return value;
}

static const function own_functions[] = {{"stop", js_stop},
                                         {"newBuffer", js_new_buffer},
                                         {"version", js_version},
                                         {"statusName", js_status_name},
                                         {NULL, NULL}};

static bool export_functions(napi_env env, napi_value exports, const function* functions) {
  for (; functions->name != NULL; ++functions) {
    napi_value call = NULL;
    if (napi_create_function(env, functions->name, NAPI_AUTO_LENGTH, functions->call, NULL,
                             &call) != napi_ok) {
      return throw_napi(env) != NULL;
    }
    set_value(env, exports, functions->name, call);
  }
  return !has_exception(env);
}

NAPI_MODULE_INIT() {
  static const function* const all[] = {own_functions, module_functions,  run_functions,
                                        llm_functions, command_functions, generate_functions};
  rl_error error = RL_ERROR_INIT;
  const rl_status status = rl_check_abi(RL_ABI_VERSION, &error);
  if (status != RL_OK) {
    napi_throw_error(env, NULL, error.text);
    return NULL;
  }
  addon* a = calloc(1, sizeof *a);
  if (a == NULL) return throw_no_memory(env);
  if (napi_set_instance_data(env, a, free_addon, NULL) != napi_ok) {
    free(a);
    return throw_napi(env);
  }
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    if (!export_functions(env, exports, all[i])) return NULL;
  }
  return exports;
}
