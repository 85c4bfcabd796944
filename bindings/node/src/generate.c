/* Generated texts. Each generation has a thread of its own: it may take long, and libuv's few
 * threads are needed for files and names meanwhile; and texts are computed together only if several
 * threads generate at once. Its pieces go to the main thread through a thread-safe function.
 *
 * An environment that is torn down ends the thread-safe function first. Its finalizer stops the
 * generation and waits for the thread, which may use the function until then.
 */
#define _XOPEN_SOURCE 700 /* for the threads of uv.h */
#include <uv.h>

#include "support.h"

typedef struct piece {
  uint32_t choice;
  uint32_t finish;
  uint32_t n_tokens;
  bool has_logprobs;
  size_t text_size;
  int32_t* tokens;
  float* logprobs;
  char* text;
} piece;

typedef struct generation {
  addon* addon;
  struct generation* next;
  struct generation* previous;
  double number; /* by which JavaScript names it */
  handle* on;
  handle* grammar;
  handle* adapter;
  memory* prompt;
  text_list stop;
  memory* stop_tokens;
  rl_generate_options options;
  rl_statistics statistics;
  rl_status status;
  rl_error error;
  atomic_bool stops;
  napi_threadsafe_function pipe;
  napi_deferred deferred;
  uv_thread_t thread;
  bool runs;     /* the thread is to be joined */
  bool is_short; /* there was no memory for a piece */
} generation;

/* ---- options ------------------------------------------------------------------------------- */

typedef enum { U32, U64, I32, F32 } field_type;

typedef struct option_field {
  const char* name;
  field_type type;
  size_t offset;
} option_field;

#define FIELD(name, type, member) {name, type, offsetof(rl_generate_options, member)}
static const option_field fields[] = {
    FIELD("n", U32, n),
    FIELD("maxTokens", U64, max_tokens),
    FIELD("seed", U64, seed),
    FIELD("temperature", F32, temperature),
    FIELD("topP", F32, top_p),
    FIELD("minP", F32, min_p),
    FIELD("typicalP", F32, typical_p),
    FIELD("topK", U32, top_k),
    FIELD("repetitionPenalty", F32, repetition_penalty),
    FIELD("presencePenalty", F32, presence_penalty),
    FIELD("frequencyPenalty", F32, frequency_penalty),
    FIELD("ignoresEnd", U32, ignores_end),
    FIELD("echoes", U32, echoes),
    FIELD("hasSpecial", U32, has_special),
    FIELD("shifts", U32, shifts),
    FIELD("keep", U64, keep),
    FIELD("guesses", U32, guesses),
    FIELD("logprobs", I32, logprobs),
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* defaultOptions(handle) */
static napi_value js_default_options(napi_env env, napi_callback_info info) {
  rl_error error = RL_ERROR_INIT;
  rl_generate_options options = {.size = sizeof options};
  napi_value value;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  handle* h = handle_of(env, value);
  if (h == NULL) return NULL;
  const rl_status status = rl_llm_default_options(llm_of(h), &options, &error);
  if (status != RL_OK) return throw_status(env, status, &error);
  napi_value object = new_object(env);
  for (int i = 0; i < N_FIELDS; ++i) {
    const void* at = (const char*)&options + fields[i].offset;
    switch (fields[i].type) {
      case U32:
        set_number(env, object, fields[i].name, *(const uint32_t*)at);
        break;
      case U64:
        set_whole(env, object, fields[i].name, *(const uint64_t*)at);
        break;
      case I32:
        set_number(env, object, fields[i].name, *(const int32_t*)at);
        break;
      case F32:
        set_number(env, object, fields[i].name, *(const float*)at);
        break;
    }
  }
  return object;
}

static void read_fields(napi_env env, napi_value from, rl_generate_options* options) {
  options->size = sizeof *options;
  for (int i = 0; i < N_FIELDS; ++i) {
    void* at = (char*)options + fields[i].offset;
    switch (fields[i].type) {
      case U32:
        *(uint32_t*)at = (uint32_t)get_whole(env, from, fields[i].name);
        break;
      case U64:
        *(uint64_t*)at = get_whole(env, from, fields[i].name);
        break;
      case I32:
        *(int32_t*)at = (int32_t)get_whole(env, from, fields[i].name);
        break;
      case F32:
        *(float*)at = (float)get_real(env, from, fields[i].name);
        break;
    }
  }
}

static handle* hold_field(napi_env env, napi_value from, const char* name) {
  napi_value value = get_field(env, from, name);
  handle* h = value != NULL ? handle_of(env, value) : NULL;
  return h != NULL ? handle_hold(h) : NULL;
}

static bool read_options(napi_env env, generation* g, napi_value from) {
  rl_generate_options* options = &g->options;
  read_fields(env, from, options);
  napi_value tokens = get_field(env, from, "stopTokens");
  if (!get_texts(env, from, "stop", &g->stop)) return false;
  if (tokens != NULL) g->stop_tokens = memory_of_bytes(env, tokens);
  g->grammar = hold_field(env, from, "grammar");
  g->adapter = hold_field(env, from, "adapter");
  options->stop = g->stop.views;
  options->n_stop = g->stop.count;
  if (g->stop_tokens != NULL) {
    options->stop_tokens = (const int32_t*)(void*)g->stop_tokens->data;
    options->n_stop_tokens = (uint32_t)(g->stop_tokens->bytes / sizeof(int32_t));
  }
  if (g->grammar != NULL) options->grammar = atomic_load(&g->grammar->rl);
  if (g->adapter != NULL) options->adapter = atomic_load(&g->adapter->rl);
  return !has_exception(env);
}

/* ---- on the generation's thread ------------------------------------------------------------ */

static piece* copy_piece(const rl_piece* from) {
  const size_t items = (size_t)from->n_tokens * 4;
  piece* p = malloc(sizeof *p + items * 2 + from->text.size);
  if (p == NULL) return NULL;
  p->choice = from->choice;
  p->finish = from->finish;
  p->n_tokens = from->n_tokens;
  p->has_logprobs = from->logprobs != NULL;
  p->text_size = from->text.size;
  p->tokens = (int32_t*)(void*)(p + 1);
  p->logprobs = (float*)(void*)((char*)p->tokens + items);
  p->text = (char*)p->logprobs + items;
  if (items > 0) memcpy(p->tokens, from->tokens, items);
  if (items > 0 && p->has_logprobs) memcpy(p->logprobs, from->logprobs, items);
  if (from->text.size > 0) memcpy(p->text, from->text.data, from->text.size);
  return p;
}

static int32_t write_piece(void* userdata, const rl_piece* from) {
  generation* g = userdata;
  if (atomic_load(&g->stops)) return 1;
  if (from->n_tokens == 0 && from->text.size == 0 && from->finish == RL_FINISH_NONE) return 0;
  piece* p = copy_piece(from);
  g->is_short = p == NULL;
  if (p == NULL) return 1;
  if (napi_call_threadsafe_function(g->pipe, p, napi_tsfn_nonblocking) == napi_ok) return 0;
  free(p);
  atomic_store(&g->stops, true); /* nobody is there to read it */
  return 1;
}

static void generate(void* data) {
  generation* g = data;
  const int32_t* prompt = (const int32_t*)(void*)g->prompt->data;
  const size_t n = g->prompt->bytes / sizeof *prompt;
  g->status = g->on->kind == SESSION
                  ? rl_session_generate(session_of(g->on), prompt, n, &g->options, write_piece, g,
                                        &g->statistics, &g->error)
                  : rl_llm_generate(llm_of(g->on), prompt, n, &g->options, write_piece, g,
                                    &g->statistics, &g->error);
  if (g->is_short && g->status == RL_OK) g->status = RL_MEMORY_ALLOCATION_FAILED;
  /* Without a piece: it has ended. */
  if (napi_call_threadsafe_function(g->pipe, NULL, napi_tsfn_nonblocking) != napi_closing) {
    napi_release_threadsafe_function(g->pipe, napi_tsfn_release);
  }
}

/* ---- on the main thread -------------------------------------------------------------------- */

static void end_thread(generation* g) {
  atomic_store(&g->stops, true);
  if (g->runs) uv_thread_join(&g->thread);
  g->runs = false;
}

static void free_generation(generation* g) {
  handle_drop(g->on);
  handle_drop(g->grammar);
  handle_drop(g->adapter);
  memory_drop(g->prompt);
  memory_drop(g->stop_tokens);
  free_texts(&g->stop);
  free(g);
}

static void finalize_pipe(napi_env env, void* data, void* hint) {
  generation* g = data;
  (void)env;
  (void)hint;
  end_thread(g);
  *(g->previous != NULL ? &g->previous->next : &g->addon->generations) = g->next;
  if (g->next != NULL) g->next->previous = g->previous;
  free_generation(g);
}

static napi_value statistics_value(napi_env env, const rl_statistics* s) {
  napi_value object = new_object(env);
  set_number(env, object, "finish", s->finish);
  set_number(env, object, "promptTokens", (double)s->prompt_tokens);
  set_number(env, object, "reusedTokens", (double)s->reused_tokens);
  set_number(env, object, "outputTokens", (double)s->output_tokens);
  set_number(env, object, "guessedTokens", (double)s->guessed_tokens);
  set_number(env, object, "acceptedTokens", (double)s->accepted_tokens);
  set_number(env, object, "recomputedTokens", (double)s->recomputed_tokens);
  set_number(env, object, "steps", (double)s->steps);
  set_number(env, object, "startedMs", (double)(s->started_ns - s->submitted_ns) / 1e6);
  set_number(env, object, "firstTokenMs",
             s->first_token_ns > 0 ? (double)(s->first_token_ns - s->submitted_ns) / 1e6 : 0);
  set_number(env, object, "finishedMs", (double)(s->finished_ns - s->submitted_ns) / 1e6);
  return object;
}

static void settle(napi_env env, generation* g) {
  const bool fails = g->status != RL_OK;
  napi_value value =
      fails ? failure_value(env, g->status, &g->error) : statistics_value(env, &g->statistics);
  if (value == NULL) return; /* the environment is being torn down */
  if (fails) {
    napi_reject_deferred(env, g->deferred, value);
  } else {
    napi_resolve_deferred(env, g->deferred, value);
  }
}

static void tell_piece(napi_env env, napi_value listener, generation* g, const piece* p) {
  napi_value object = new_object(env), none = NULL, result = NULL;
  const rl_text_v1 text = {p->text, p->text_size};
  set_number(env, object, "choice", p->choice);
  set_text(env, object, "text", text);
  set_value(env, object, "tokens", new_items(env, napi_int32_array, p->tokens, p->n_tokens));
  if (p->has_logprobs && !has_exception(env)) {
    set_value(env, object, "logprobs",
              new_items(env, napi_float32_array, p->logprobs, p->n_tokens));
  }
  set_number(env, object, "finish", p->finish);
  /* The listener is that of lib/, which throws nothing: if this fails, the environment ends. */
  if (has_exception(env) || napi_get_undefined(env, &none) != napi_ok ||
      napi_call_function(env, none, listener, 1, &object, &result) != napi_ok) {
    atomic_store(&g->stops, true);
  }
}

/* Called with env NULL for what is left when the environment ends: `context` is freed by then. */
static void tell(napi_env env, napi_value listener, void* context, void* data) {
  generation* g = context;
  piece* p = data;
  if (env != NULL && p != NULL) tell_piece(env, listener, g, p);
  if (env != NULL && p == NULL) settle(env, g);
  free(p);
}

static bool start(napi_env env, generation* g, napi_value listener) {
  napi_value name = NULL;
  if (napi_create_string_utf8(env, "rushlight", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_threadsafe_function(env, listener, NULL, name, 0, 1, g, finalize_pipe, g, tell,
                                      &g->pipe) != napi_ok) {
    throw_napi(env);
    free_generation(g);
    return false;
  }
  /* From here on, the finalizer frees it. */
  g->next = g->addon->generations;
  if (g->next != NULL) g->next->previous = g;
  g->addon->generations = g;
  g->runs = uv_thread_create(&g->thread, generate, g) == 0;
  if (g->runs) return true;
  napi_release_threadsafe_function(g->pipe, napi_tsfn_abort);
  throw_text(env, RL_OUT_OF_RESOURCES, "the system has no thread left for the generation");
  return false;
}

static napi_value generation_value(napi_env env, double number, napi_value promise) {
  napi_value object = new_object(env);
  set_number(env, object, "number", number);
  set_value(env, object, "ended", promise);
  return object;
}

/* generate(handle, prompt, options, listener): {ended, number}: a promise of statistics, and what
 * stopGeneration() takes */
static napi_value js_generate(napi_env env, napi_callback_info info) {
  napi_value arguments[4], promise = NULL;
  if (!read_arguments(env, info, 4, arguments)) return NULL;
  addon* a = addon_of(env);
  handle* h = handle_of(env, arguments[0]);
  if (h == NULL) return NULL;
  if (atomic_load(&a->stopping)) return throw_text(env, RL_CANCELLED, "the process ends");
  generation* g = calloc(1, sizeof *g);
  if (g == NULL) return throw_no_memory(env);
  g->addon = a;
  g->number = ++a->last_number;
  g->on = handle_hold(h);
  g->error = (rl_error)RL_ERROR_INIT;
  g->statistics.size = sizeof g->statistics;
  g->prompt = memory_of_bytes(env, arguments[1]);
  if (g->prompt == NULL || !read_options(env, g, arguments[2]) ||
      napi_create_promise(env, &g->deferred, &promise) != napi_ok) {
    throw_napi(env);
    free_generation(g);
    return NULL;
  }
  const double number = a->last_number;
  return start(env, g, arguments[3]) ? generation_value(env, number, promise) : NULL;
}

/* stopGeneration(number): its texts end, unless they have ended */
static napi_value js_stop_generation(napi_env env, napi_callback_info info) {
  napi_value value;
  double number = 0;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  napi_get_value_double(env, value, &number);
  for (generation* g = addon_of(env)->generations; g != NULL; g = g->next) {
    if (g->number == number) atomic_store(&g->stops, true);
  }
  return NULL;
}

void stop_generations(addon* a) {
  for (generation* g = a->generations; g != NULL; g = g->next) atomic_store(&g->stops, true);
  for (generation* g = a->generations; g != NULL; g = g->next) end_thread(g);
}

const function generate_functions[] = {{"defaultOptions", js_default_options},
                                       {"generate", js_generate},
                                       {"stopGeneration", js_stop_generation},
                                       {NULL, NULL}};
