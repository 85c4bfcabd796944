/* Calls that take at most a handle, two texts or numbers, and bytes, and give a handle or bytes: a
 * table of them, and one task. */
#include "support.h"

typedef struct command command;

typedef struct command_kind {
  handle_kind on;
  const char* name;
  void (*execute)(command*);
} command_kind;

struct command {
  task t;
  const command_kind* kind;
  char* text;
  size_t text_size;
  uint64_t numbers[3];
  memory* source;
  handle* other; /* an adapter, or NULL */
  memory* bytes; /* the result, of which there are */
  size_t count;
  handle* made;
  rl_module_info info;
  rl_state_info* states;
  bool has_info;
};

/* ---- on a thread of the pool --------------------------------------------------------------- */

static rl_status fail(command* c, rl_status status, const char* text) {
  strncpy(c->t.error.text, text, sizeof c->t.error.text - 1);
  return status;
}

static rl_status fail_memory(command* c) {
  return fail(c, RL_MEMORY_ALLOCATION_FAILED, "there is not enough memory left");
}

static void give(command* c, handle_kind kind, void* rl) {
  if (c->t.status != RL_OK) return;
  c->made = handle_new(kind, rl, c->t.on->program);
  if (c->made == NULL) c->t.status = fail_memory(c);
}

/* Room for the result; false with a failure. */
static bool make_room(command* c, size_t bytes) {
  if (c->t.status != RL_OK) return false;
  c->bytes = memory_new(bytes);
  if (c->bytes == NULL) c->t.status = fail_memory(c);
  return c->bytes != NULL;
}

#define ON_MODULE(function, ...) \
  c->t.status = function(module_of(c->t.on), __VA_ARGS__, &c->t.error)
#define ON_LLM(function, ...) c->t.status = function(llm_of(c->t.on), __VA_ARGS__, &c->t.error)
#define ON_SESSION(function, ...) \
  c->t.status = function(session_of(c->t.on), __VA_ARGS__, &c->t.error)

static void close_it(command* c) { c->t.status = handle_close(c->t.on, &c->t.error); }

static void measure(command* c) {
  c->info.size = sizeof c->info;
  if (c->t.status == RL_OK) ON_MODULE(rl_module_describe, &c->info);
  c->t.memory_in_use = c->info.memory_in_use;
}

static void load(command* c) {
  ON_MODULE(rl_module_load, c->text);
  measure(c);
}

static void unload(command* c) {
  ON_MODULE(rl_module_unload, c->text);
  measure(c);
}

static void memory_use(command* c) {
  measure(c);
  c->has_info = c->t.status == RL_OK;
}

static void clone(command* c) {
  rl_module* copy = NULL;
  ON_MODULE(rl_module_clone, &copy);
  give(c, MODULE, copy);
}

static void fork_module(command* c) {
  rl_module* copy = NULL;
  ON_MODULE(rl_module_fork, &copy);
  give(c, MODULE, copy);
}

static void snapshot(command* c) {
  ON_MODULE(rl_module_snapshot, NULL, 0, &c->count);
  if (make_room(c, c->count)) {
    ON_MODULE(rl_module_snapshot, c->bytes->data, c->bytes->bytes, &c->count);
  }
}

static void restore(command* c) { ON_MODULE(rl_module_restore, c->source->data, c->source->bytes); }

static void reset_state(command* c) {
  c->t.status = rl_module_reset_state(module_of(c->t.on), &c->t.error);
}

static void seed(command* c) { ON_MODULE(rl_module_seed, c->numbers[0]); }

/* Copies of all state, one behind the other; a failure forgets them. */
static void states(command* c) {
  uint32_t n = 0;
  size_t bytes = 0;
  ON_MODULE(rl_module_state_count, &n);
  c->states = calloc((size_t)n + 1, sizeof *c->states);
  if (c->states == NULL) c->t.status = fail_memory(c);
  for (c->count = 0; c->t.status == RL_OK && c->count < n; ++c->count) {
    rl_state_info* info = &c->states[c->count];
    info->size = sizeof *info;
    ON_MODULE(rl_module_state, (uint32_t)c->count, info);
    bytes += (info->nbytes + 15) / 16 * 16;
  }
  if (!make_room(c, bytes)) return;
  char* to = c->bytes->data;
  for (size_t i = 0; i < c->count; to += (c->states[i].nbytes + 15) / 16 * 16, ++i) {
    if (c->states[i].nbytes > 0) memcpy(to, c->states[i].data, c->states[i].nbytes);
  }
}

static void trace_start(command* c) {
  rl_trace_options options = {.size = sizeof options};
  options.values = (uint32_t)c->numbers[0];
  options.bytes = c->numbers[1];
  options.value_bytes = c->numbers[2];
  if (c->t.on->kind == LLM) {
    ON_LLM(rl_llm_trace_start, &options);
  } else {
    ON_MODULE(rl_module_trace_start, &options);
  }
}

static void trace_stop(command* c) {
  c->t.status = c->t.on->kind == LLM ? rl_llm_trace_stop(llm_of(c->t.on), &c->t.error)
                                     : rl_module_trace_stop(module_of(c->t.on), &c->t.error);
}

static void trace_save(command* c) {
  if (c->t.on->kind == LLM) {
    ON_LLM(rl_llm_trace_save, c->text);
  } else {
    ON_MODULE(rl_module_trace_save, c->text);
  }
}

static void failure_report(command* c) {
  rl_bytes_v1 report = {NULL, 0};
  ON_MODULE(rl_module_failure_report, &report);
  if (report.size > 0 && make_room(c, report.size)) {
    memcpy(c->bytes->data, report.data, c->count = report.size);
  }
}

static void open_session(command* c) {
  rl_session* session = NULL;
  ON_LLM(rl_session_open, &session);
  give(c, SESSION, session);
}

static void restore_session(command* c) {
  rl_session* session = NULL;
  rl_adapter* adapter = c->other != NULL ? atomic_load(&c->other->rl) : NULL;
  ON_LLM(rl_session_restore, c->text, adapter, &session);
  give(c, SESSION, session);
}

static void grammar_of_regex(command* c) {
  rl_grammar* grammar = NULL;
  ON_LLM(rl_grammar_from_regex, ((rl_text_v1){c->text, c->text_size}), &grammar);
  give(c, GRAMMAR, grammar);
}

static void grammar_of_schema(command* c) {
  rl_grammar* grammar = NULL;
  ON_LLM(rl_grammar_from_json_schema, ((rl_text_v1){c->text, c->text_size}), &grammar);
  give(c, GRAMMAR, grammar);
}

static void open_adapter(command* c) {
  rl_adapter* adapter = NULL;
  ON_LLM(rl_adapter_open, c->text, &adapter);
  give(c, ADAPTER, adapter);
}

static void fork_session(command* c) {
  rl_session* copy = NULL;
  ON_SESSION(rl_session_fork, &copy);
  give(c, SESSION, copy);
}

static void rewind_session(command* c) { ON_SESSION(rl_session_rewind, (size_t)c->numbers[0]); }

static void tokens(command* c) {
  ON_SESSION(rl_session_tokens, NULL, 0, &c->count);
  const size_t n = c->count;
  if (make_room(c, n * sizeof(int32_t))) {
    ON_SESSION(rl_session_tokens, (int32_t*)(void*)c->bytes->data, n, &c->count);
  }
}

static void set_tokens(command* c) {
  ON_SESSION(rl_session_set_tokens, (const int32_t*)(void*)c->source->data,
             c->source->bytes / sizeof(int32_t));
}

static void save(command* c) { ON_SESSION(rl_session_save, c->text); }

static const command_kind kinds[] = {
    {MODULE, "close", close_it},
    {MODULE, "load", load},
    {MODULE, "unload", unload},
    {MODULE, "memory", memory_use},
    {MODULE, "clone", clone},
    {MODULE, "fork", fork_module},
    {MODULE, "snapshot", snapshot},
    {MODULE, "restore", restore},
    {MODULE, "resetState", reset_state},
    {MODULE, "seed", seed},
    {MODULE, "states", states},
    {MODULE, "startTrace", trace_start},
    {MODULE, "stopTrace", trace_stop},
    {MODULE, "saveTrace", trace_save},
    {MODULE, "failureReport", failure_report},
    {LLM, "close", close_it},
    {LLM, "startTrace", trace_start},
    {LLM, "stopTrace", trace_stop},
    {LLM, "saveTrace", trace_save},
    {LLM, "session", open_session},
    {LLM, "restore", restore_session},
    {LLM, "grammarFromRegex", grammar_of_regex},
    {LLM, "grammarFromJsonSchema", grammar_of_schema},
    {LLM, "adapter", open_adapter},
    {SESSION, "close", close_it},
    {SESSION, "fork", fork_session},
    {SESSION, "rewind", rewind_session},
    {SESSION, "tokens", tokens},
    {SESSION, "setTokens", set_tokens},
    {SESSION, "save", save},
    {GRAMMAR, "close", close_it},
    {ADAPTER, "close", close_it},
};

/* ---- on the main thread -------------------------------------------------------------------- */

static void execute(task* t) { ((command*)t)->kind->execute((command*)t); }

static void release(napi_env env, task* t) {
  command* c = (command*)t;
  (void)env;
  free(c->text);
  memory_drop(c->source);
  handle_drop(c->other);
  memory_drop(c->bytes);
  handle_drop(c->made);
  free(c->states);
}

/* {buffer, states}: `buffer` has the bytes of all, each at its offset. */
static napi_value states_value(napi_env env, command* c) {
  napi_value object = new_object(env), list = new_array(env);
  size_t offset = 0;
  for (size_t i = 0; i < c->count && !has_exception(env); ++i) {
    const rl_state_info* info = &c->states[i];
    napi_value state = new_object(env);
    set_text(env, state, "name", info->name);
    set_text(env, state, "method", info->method);
    set_number(env, state, "dtype", info->dtype);
    set_numbers(env, state, "sizes", info->sizes, info->rank);
    set_number(env, state, "offset", (double)offset);
    int32_t order[RL_MAX_RANK];
    for (uint32_t k = 0; k < info->rank; ++k) order[k] = info->dim_order[k];
    set_numbers(env, state, "dimOrder", order, info->rank);
    if (napi_set_element(env, list, (uint32_t)i, state) != napi_ok) return throw_napi(env);
    offset += (info->nbytes + 15) / 16 * 16;
  }
  set_value(env, object, "states", list);
  set_value(env, object, "buffer", memory_buffer(env, memory_hold(c->bytes)));
  return object;
}

static napi_value result(napi_env env, task* t) {
  command* c = (command*)t;
  if (c->made != NULL) return handle_value(env, handle_hold(c->made));
  if (c->states != NULL) return states_value(env, c);
  if (c->bytes != NULL) return memory_buffer(env, memory_hold(c->bytes));
  if (!c->has_info) return NULL;
  napi_value object = new_object(env);
  set_whole(env, object, "inUse", c->info.memory_in_use);
  set_whole(env, object, "resident", c->info.memory_resident);
  return object;
}

static const command_kind* find(handle_kind on, const char* name) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (kinds[i].on == on && strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  return NULL;
}

static bool read_command(napi_env env, command* c, napi_value with) {
  static const char* const names[] = {"first", "second", "third"};
  napi_value text = get_field(env, with, "text");
  napi_value bytes = get_field(env, with, "bytes");
  napi_value other = get_field(env, with, "adapter");
  if (text != NULL) c->text = read_text(env, text, &c->text_size);
  for (int i = 0; i < 3; ++i) c->numbers[i] = get_whole(env, with, names[i]);
  if (bytes != NULL) c->source = memory_of_bytes(env, bytes);
  if (other != NULL) c->other = handle_of(env, other);
  if (c->other != NULL) handle_hold(c->other);
  return !has_exception(env);
}

/* command(handle, name, {text, first, second, third, bytes, adapter}) */
static napi_value js_command(napi_env env, napi_callback_info info) {
  napi_value arguments[3];
  if (!read_arguments(env, info, 3, arguments)) return NULL;
  handle* h = handle_of(env, arguments[0]);
  if (h == NULL) return NULL;
  char* name = read_text(env, arguments[1], NULL);
  if (name == NULL) return NULL;
  const command_kind* kind = find(h->kind, name);
  free(name);
  if (kind == NULL) return throw_text(env, RL_INTERNAL, "the addon has no such command");
  command* c = task_new(env, sizeof *c, h);
  if (c == NULL) return NULL;
  c->kind = kind;
  c->t.execute = execute;
  c->t.make = result;
  c->t.release = release;
  if (!read_command(env, c, arguments[2])) return task_abandon(env, &c->t);
  return task_start(env, &c->t);
}

const function command_functions[] = {{"command", js_command}, {NULL, NULL}};
