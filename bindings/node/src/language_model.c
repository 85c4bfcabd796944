/* Language models: opening them, what they are, tokens and vectors of texts. */
#include "support.h"

/* ---- opening ------------------------------------------------------------------------------- */

typedef struct opening {
  task t;
  char* path;      /* or: */
  memory* program; /* */
  char* data_path;
  char* chat_template;
  text_list backends;
  text_list kernels;
  rl_llm_options options;
  handle* made;
} opening;

static void open_llm(task* t) {
  opening* o = (opening*)t;
  rl_llm* llm = NULL;
  t->status = o->path != NULL ? rl_llm_open(o->path, &o->options, &llm, &t->error)
                              : rl_llm_open_memory(o->program->data, o->program->bytes, &o->options,
                                                   &llm, &t->error);
  if (t->status != RL_OK) return;
  o->made = handle_new(LLM, llm, o->program);
  if (o->made == NULL) t->status = RL_MEMORY_ALLOCATION_FAILED;
}

static void release_opening(napi_env env, task* t) {
  opening* o = (opening*)t;
  (void)env;
  free(o->path);
  free(o->data_path);
  free(o->chat_template);
  free_texts(&o->backends);
  free_texts(&o->kernels);
  memory_drop(o->program);
  handle_drop(o->made);
}

static napi_value opened(napi_env env, task* t) {
  return handle_value(env, handle_hold(((opening*)t)->made));
}

/* openLanguageModel({path or program, ...options}) */
static napi_value js_open_llm(napi_env env, napi_callback_info info) {
  napi_value from;
  if (!read_arguments(env, info, 1, &from)) return NULL;
  opening* o = task_new(env, sizeof *o, NULL);
  if (o == NULL) return NULL;
  o->t.execute = open_llm;
  o->t.make = opened;
  o->t.release = release_opening;
  o->options.size = sizeof o->options;
  o->options.threads = (uint32_t)get_whole(env, from, "threads");
  o->options.memory_limit = get_whole(env, from, "memoryLimit");
  o->options.reads_file = (uint32_t)get_whole(env, from, "readsFile");
  o->options.guards_file = (uint32_t)get_whole(env, from, "guardsFile");
  o->options.cache = (uint32_t)get_whole(env, from, "cache");
  o->options.max_texts = (uint32_t)get_whole(env, from, "maxTexts");
  o->options.cache_limit = get_whole(env, from, "cacheLimit");
  o->options.prefill_rows = get_whole(env, from, "prefillRows");
  o->options.data_path = o->data_path = get_text(env, from, "dataPath");
  o->options.chat_template = o->chat_template = get_text(env, from, "chatTemplate");
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

/* ---- calls that any thread may make at any time, and that are short ----------------------------
 */

/* describeLanguageModel(handle) */
static napi_value js_describe_llm(napi_env env, napi_callback_info info) {
  rl_error error = RL_ERROR_INIT;
  rl_llm_info known = {.size = sizeof known};
  napi_value value;
  if (!read_arguments(env, info, 1, &value)) return NULL;
  handle* h = handle_of(env, value);
  if (h == NULL) return NULL;
  const rl_status status = rl_llm_describe(llm_of(h), &known, &error);
  if (status != RL_OK) return throw_status(env, status, &error);
  napi_value object = new_object(env);
  set_number(env, object, "cacheDtype", known.cache_dtype);
  set_whole(env, object, "vocabulary", known.vocabulary);
  set_whole(env, object, "context", known.context);
  set_whole(env, object, "hidden", known.hidden);
  set_whole(env, object, "pageBytes", known.page_bytes);
  set_whole(env, object, "cacheBytes", known.cache_bytes);
  set_whole(env, object, "cacheLimit", known.cache_limit);
  set_number(env, object, "hasTokenizer", known.has_tokenizer);
  set_number(env, object, "hasChatTemplate", known.has_chat_template);
  return object;
}

/* Flags of encode() beside those of the C interface. */
enum { IS_CHAT = 256 };

static rl_status encode(rl_llm* llm, rl_text_v1 text, uint32_t flags, int32_t* tokens,
                        size_t capacity, size_t* count, rl_error* error) {
  return (flags & IS_CHAT) != 0 ? rl_llm_encode_chat(llm, text, tokens, capacity, count, error)
                                : rl_llm_encode(llm, text, flags, tokens, capacity, count, error);
}

/* encode(handle, text, flags): tokens, as an Int32Array */
static napi_value js_encode(napi_env env, napi_callback_info info) {
  rl_error error = RL_ERROR_INIT;
  napi_value arguments[3], made = NULL;
  size_t count = 0;
  uint32_t flags = 0;
  rl_text_v1 text = {NULL, 0};
  if (!read_arguments(env, info, 3, arguments)) return NULL;
  handle* h = handle_of(env, arguments[0]);
  char* data = h != NULL ? read_text(env, arguments[1], &text.size) : NULL;
  if (data == NULL) return NULL;
  text.data = data;
  napi_get_value_uint32(env, arguments[2], &flags);
  rl_status status = encode(llm_of(h), text, flags, NULL, 0, &count, &error);
  int32_t* tokens = status == RL_OK ? malloc((count + 1) * sizeof *tokens) : NULL;
  if (tokens != NULL) status = encode(llm_of(h), text, flags, tokens, count, &count, &error);
  if (status != RL_OK) {
    throw_status(env, status, &error);
  } else if (tokens == NULL) {
    throw_no_memory(env);
  } else {
    made = new_items(env, napi_int32_array, tokens, count);
  }
  free(tokens);
  free(data);
  return made;
}

/* decode(handle, tokens, flags): a string; `tokens` is an Int32Array's bytes. */
static napi_value js_decode(napi_env env, napi_callback_info info) {
  rl_error error = RL_ERROR_INIT;
  napi_value arguments[3], made = NULL;
  size_t count = 0;
  uint32_t flags = 0;
  if (!read_arguments(env, info, 3, arguments)) return NULL;
  handle* h = handle_of(env, arguments[0]);
  memory* tokens = h != NULL ? memory_of_bytes(env, arguments[1]) : NULL;
  if (tokens == NULL) return NULL;
  napi_get_value_uint32(env, arguments[2], &flags);
  const int32_t* ids = (const int32_t*)(void*)tokens->data;
  const size_t n = tokens->bytes / sizeof *ids;
  rl_status status = rl_llm_decode(llm_of(h), ids, n, flags, NULL, 0, &count, &error);
  char* text = status == RL_OK ? malloc(count + 1) : NULL;
  if (text != NULL) {
    status = rl_llm_decode(llm_of(h), ids, n, flags, text, count, &count, &error);
  }
  if (status != RL_OK) {
    throw_status(env, status, &error);
  } else if (text == NULL) {
    throw_no_memory(env);
  } else if (napi_create_string_utf8(env, text, count, &made) != napi_ok) {
    throw_napi(env);
  }
  free(text);
  memory_drop(tokens);
  return made;
}

/* ---- vectors of texts ---------------------------------------------------------------------- */

typedef struct embedding {
  task t;
  text_list texts;
  bool normalizes;
  bool truncates;
  memory* vectors;
} embedding;

static void execute_embedding(task* t) {
  embedding* e = (embedding*)t;
  rl_llm_info info = {.size = sizeof info};
  rl_llm* llm = llm_of(t->on);
  t->status = rl_llm_describe(llm, &info, &t->error);
  if (t->status != RL_OK) return;
  const size_t count = (size_t)info.hidden * e->texts.count;
  e->vectors = memory_new(count * sizeof(float));
  if (e->vectors == NULL) {
    t->status = RL_MEMORY_ALLOCATION_FAILED;
    return;
  }
  t->status = rl_llm_embed(llm, e->texts.views, e->texts.count, e->normalizes, e->truncates,
                           (float*)(void*)e->vectors->data, count, &t->error);
}

static napi_value embedding_value(napi_env env, task* t) {
  return memory_buffer(env, memory_hold(((embedding*)t)->vectors));
}

static void release_embedding(napi_env env, task* t) {
  embedding* e = (embedding*)t;
  (void)env;
  free_texts(&e->texts);
  memory_drop(e->vectors);
}

/* embed(handle, texts, normalizes, truncates): a buffer with one vector behind the other */
static napi_value js_embed(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  if (!read_arguments(env, info, 4, arguments)) return NULL;
  handle* h = handle_of(env, arguments[0]);
  embedding* e = h != NULL ? task_new(env, sizeof *e, h) : NULL;
  if (e == NULL) return NULL;
  e->t.execute = execute_embedding;
  e->t.make = embedding_value;
  e->t.release = release_embedding;
  if (!read_texts(env, arguments[1], &e->texts) ||
      napi_get_value_bool(env, arguments[2], &e->normalizes) != napi_ok ||
      napi_get_value_bool(env, arguments[3], &e->truncates) != napi_ok) {
    return task_abandon(env, &e->t);
  }
  return task_start(env, &e->t);
}

const function llm_functions[] = {{"openLanguageModel", js_open_llm},
                                  {"describeLanguageModel", js_describe_llm},
                                  {"encode", js_encode},
                                  {"decode", js_decode},
                                  {"embed", js_embed},
                                  {NULL, NULL}};
