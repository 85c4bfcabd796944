/* dev.rushlight.LanguageModel, and what it makes. */
#include "support.h"

static rl_llm* model_of(jlong handle) { return (rl_llm*)(uintptr_t)handle; }
static rl_session* session_of(jlong handle) { return (rl_session*)(uintptr_t)handle; }

RL_JNI(jlong, LanguageModel, openFile)
(JNIEnv* env, jclass type, jbyteArray path, jlongArray numbers, jbyteArray data,
 jbyteArray chat_template, jobjectArray kernels, jobjectArray backends) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_llm* model = NULL;
  jlong n[8];
  (*env)->GetLongArrayRegion(env, numbers, 0, 8, n);
  rl_llm_options options = {.size = sizeof options};
  options.threads = n[0] > 0 ? (uint32_t)n[0] : 0;
  options.memory_limit = n[1] > 0 ? (uint64_t)n[1] : 0;
  options.reads_file = n[2] != 0;
  options.guards_file = n[3] != 0;
  options.cache = (uint32_t)n[4];
  options.max_texts = n[5] > 0 ? (uint32_t)n[5] : 0;
  options.cache_limit = n[6] > 0 ? (uint64_t)n[6] : 0;
  options.prefill_rows = n[7] > 0 ? (uint64_t)n[7] : 0;
  char* bytes = rl_bytes(env, path, NULL);
  char* data_path = data != NULL ? rl_bytes(env, data, NULL) : NULL;
  char* template = chat_template != NULL ? rl_bytes(env, chat_template, NULL) : NULL;
  char** kernel_paths = rl_paths(env, kernels, &options.n_kernel_libraries);
  char** backend_paths = rl_paths(env, backends, &options.n_backend_libraries);
  options.data_path = data_path;
  options.chat_template = template;
  options.kernel_libraries = (const char* const*)kernel_paths;
  options.backend_libraries = (const char* const*)backend_paths;
  if (!(*env)->ExceptionCheck(env)) {
    rl_throw(env, rl_llm_open(bytes, &options, &model, &error), &error);
  }
  rl_free_paths(backend_paths, options.n_backend_libraries);
  rl_free_paths(kernel_paths, options.n_kernel_libraries);
  free(template);
  free(data_path);
  free(bytes);
  return (jlong)(uintptr_t)model;
}

/* Context, vocabulary, hidden, bytes of the cache now and at most, tokenizer, chat template. */
RL_JNI(jlongArray, LanguageModel, describe)(JNIEnv* env, jclass type, jlong model) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_llm_info info = {.size = sizeof info};
  if (rl_throw(env, rl_llm_describe(model_of(model), &info, &error), &error)) return NULL;
  const jlong told[] = {(jlong)info.context,     (jlong)info.vocabulary,  (jlong)info.hidden,
                        (jlong)info.cache_bytes, (jlong)info.cache_limit, info.has_tokenizer,
                        info.has_chat_template};
  jlongArray array = (*env)->NewLongArray(env, 7);
  if (array != NULL) (*env)->SetLongArrayRegion(env, array, 0, 7, told);
  return array;
}

RL_JNI(void, LanguageModel, closeModel)(JNIEnv* env, jclass type, jlong model) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_llm_close(model_of(model), &error), &error);
}

/* The tokens of a text, or of a conversation in JSON. */
static jintArray encode(JNIEnv* env, rl_llm* model, jbyteArray text, uint32_t flags, int is_chat) {
  rl_error error = RL_ERROR_INIT;
  size_t size = 0, count = 0;
  jintArray made = NULL;
  int32_t* tokens = NULL;
  char* bytes = rl_bytes(env, text, &size);
  if (bytes == NULL) return NULL;
  const rl_text_v1 view = {bytes, size};
  rl_status status = is_chat ? rl_llm_encode_chat(model, view, NULL, 0, &count, &error)
                             : rl_llm_encode(model, view, flags, NULL, 0, &count, &error);
  if (status == RL_OK) tokens = malloc((count + 1) * sizeof *tokens);
  if (status == RL_OK && tokens == NULL) rl_no_memory(env);
  if (tokens != NULL) {
    status = is_chat ? rl_llm_encode_chat(model, view, tokens, count, &count, &error)
                     : rl_llm_encode(model, view, flags, tokens, count, &count, &error);
    if (status == RL_OK) made = rl_new_ints(env, tokens, count);
  }
  rl_throw(env, status, &error);
  free(tokens);
  free(bytes);
  return made;
}

RL_JNI(jintArray, LanguageModel, encode)
(JNIEnv* env, jclass type, jlong model, jbyteArray text, jint flags) {
  (void)type;
  return encode(env, model_of(model), text, (uint32_t)flags, 0);
}

RL_JNI(jintArray, LanguageModel, encodeChat)
(JNIEnv* env, jclass type, jlong model, jbyteArray json) {
  (void)type;
  return encode(env, model_of(model), json, 0, 1);
}

RL_JNI(jbyteArray, LanguageModel, decode)
(JNIEnv* env, jclass type, jlong model, jintArray tokens, jint wanted) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  size_t count = 0;
  jbyteArray made = NULL;
  const size_t n = (size_t)(*env)->GetArrayLength(env, tokens);
  jint* ids = (*env)->GetIntArrayElements(env, tokens, NULL);
  if (ids == NULL) return NULL;
  const uint32_t flags = (uint32_t)wanted;
  rl_status status =
      rl_llm_decode(model_of(model), (const int32_t*)ids, n, flags, NULL, 0, &count, &error);
  char* text = status == RL_OK ? malloc(count + 1) : NULL;
  if (status == RL_OK && text == NULL) rl_no_memory(env);
  if (text != NULL) {
    status =
        rl_llm_decode(model_of(model), (const int32_t*)ids, n, flags, text, count, &count, &error);
    if (status == RL_OK) made = rl_new_bytes(env, text, count);
  }
  rl_throw(env, status, &error);
  free(text);
  (*env)->ReleaseIntArrayElements(env, tokens, ids, JNI_ABORT);
  return made;
}

/* The fields of GenerateOptions, in their order there. */
RL_JNI(void, LanguageModel, defaults)
(JNIEnv* env, jclass type, jlong model, jlongArray integers, jfloatArray numbers) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_generate_options o = {.size = sizeof o};
  if (rl_throw(env, rl_llm_default_options(model_of(model), &o, &error), &error)) return;
  const jlong whole[] = {
      o.n,       (jlong)o.max_tokens, (jlong)o.seed, o.top_k,       o.ignores_end,
      o.echoes,  o.has_special,       o.shifts,      (jlong)o.keep, o.guesses,
      o.logprobs};
  const jfloat real[] = {
      o.temperature,      o.top_p, o.min_p, o.typical_p, o.repetition_penalty, o.presence_penalty,
      o.frequency_penalty};
  (*env)->SetLongArrayRegion(env, integers, 0, 11, whole);
  (*env)->SetFloatArrayRegion(env, numbers, 0, 7, real);
}

static void read_options(JNIEnv* env, jlongArray integers, jfloatArray numbers,
                         rl_generate_options* o) {
  jlong whole[11];
  jfloat real[7];
  (*env)->GetLongArrayRegion(env, integers, 0, 11, whole);
  (*env)->GetFloatArrayRegion(env, numbers, 0, 7, real);
  o->n = (uint32_t)whole[0];
  o->max_tokens = (uint64_t)whole[1];
  o->seed = (uint64_t)whole[2];
  o->top_k = (uint32_t)whole[3];
  o->ignores_end = whole[4] != 0;
  o->echoes = whole[5] != 0;
  o->has_special = whole[6] != 0;
  o->shifts = whole[7] != 0;
  o->keep = (uint64_t)whole[8];
  o->guesses = (uint32_t)whole[9];
  o->logprobs = (int32_t)whole[10];
  o->temperature = real[0];
  o->top_p = real[1];
  o->min_p = real[2];
  o->typical_p = real[3];
  o->repetition_penalty = real[4];
  o->presence_penalty = real[5];
  o->frequency_penalty = real[6];
}

typedef struct listening {
  JNIEnv* env;
  jobject listener; /* NULL: nobody listens */
  jclass models;
  jmethodID tell;
} listening;

/* Stops if the listener says so, or threw an exception. */
static int32_t tell(void* userdata, const rl_piece* piece) {
  const listening* l = userdata;
  JNIEnv* env = l->env;
  if (l->listener == NULL || (piece->n_tokens == 0 && piece->text.size == 0)) return 0;
  if ((*env)->PushLocalFrame(env, 8) != 0) return 1;
  jbyteArray text = rl_new_bytes(env, piece->text.data, piece->text.size);
  jintArray tokens = text ? rl_new_ints(env, piece->tokens, piece->n_tokens) : NULL;
  jfloatArray logprobs = NULL;
  if (tokens != NULL && piece->logprobs != NULL) {
    logprobs = (*env)->NewFloatArray(env, (jsize)piece->n_tokens);
    if (logprobs != NULL) {
      (*env)->SetFloatArrayRegion(env, logprobs, 0, (jsize)piece->n_tokens, piece->logprobs);
    }
  }
  jboolean goes_on = JNI_FALSE;
  if (tokens != NULL && !(*env)->ExceptionCheck(env)) {
    goes_on = (*env)->CallStaticBooleanMethod(env, l->models, l->tell, l->listener,
                                              (jint)piece->choice, text, tokens, logprobs);
  }
  if ((*env)->ExceptionCheck(env)) goes_on = JNI_FALSE;
  (*env)->PopLocalFrame(env, NULL);
  return goes_on ? 0 : 1;
}

/* The texts of an array, to be freed by free_texts(); NULL with an exception. */
static rl_text_v1* read_texts(JNIEnv* env, jobjectArray array, jsize n, int has_nul) {
  rl_text_v1* texts = calloc((size_t)n + 1, sizeof *texts);
  if (texts == NULL) return rl_no_memory(env);
  for (jsize i = 0; i < n; ++i) {
    jbyteArray one = (jbyteArray)(*env)->GetObjectArrayElement(env, array, i);
    size_t size = 0;
    texts[i].data = rl_bytes(env, one, &size);
    texts[i].size = size > 0 && has_nul ? size - 1 : size;
    (*env)->DeleteLocalRef(env, one);
  }
  return texts;
}

static void free_texts(rl_text_v1* texts, jsize n) {
  for (jsize i = 0; texts != NULL && i < n; ++i) free((void*)texts[i].data);
  free(texts);
}

/* 0 if it never came to that. */
static jlong nanos(uint64_t from, uint64_t to) { return to > from ? (jlong)(to - from) : 0; }

static jlongArray new_statistics(JNIEnv* env, const rl_statistics* s) {
  const jlong numbers[] = {s->finish,
                           (jlong)s->prompt_tokens,
                           (jlong)s->reused_tokens,
                           (jlong)s->output_tokens,
                           (jlong)s->guessed_tokens,
                           (jlong)s->accepted_tokens,
                           (jlong)s->recomputed_tokens,
                           (jlong)s->steps,
                           nanos(s->submitted_ns, s->first_token_ns),
                           nanos(s->submitted_ns, s->finished_ns)};
  jlongArray made = (*env)->NewLongArray(env, 10);
  if (made != NULL) (*env)->SetLongArrayRegion(env, made, 0, 10, numbers);
  return made;
}

RL_JNI(jlongArray, LanguageModel, generate)
(JNIEnv* env, jclass type, jlong handle, jboolean is_session, jintArray prompt, jlongArray integers,
 jfloatArray numbers, jobjectArray stop, jintArray stop_tokens, jlong grammar, jlong adapter,
 jobject listener) {
  rl_error error = RL_ERROR_INIT;
  rl_status status = RL_OK;
  rl_generate_options options = {.size = sizeof options};
  read_options(env, integers, numbers, &options);
  options.grammar = (rl_grammar*)(uintptr_t)grammar;
  options.adapter = (rl_adapter*)(uintptr_t)adapter;
  listening l = {env, listener, type, NULL};
  l.tell = (*env)->GetStaticMethodID(env, type, "tell", "(Ldev/rushlight/TextListener;I[B[I[F)Z");
  const jsize n_stop = (*env)->GetArrayLength(env, stop);
  const size_t n = (size_t)(*env)->GetArrayLength(env, prompt);
  rl_text_v1* stops = l.tell ? read_texts(env, stop, n_stop, 1) : NULL;
  jint* ids = stops ? (*env)->GetIntArrayElements(env, prompt, NULL) : NULL;
  jint* ends = ids ? (*env)->GetIntArrayElements(env, stop_tokens, NULL) : NULL;
  rl_statistics statistics = {.size = sizeof statistics};
  if (ends != NULL && !(*env)->ExceptionCheck(env)) {
    options.stop = stops;
    options.n_stop = (uint32_t)n_stop;
    options.stop_tokens = (const int32_t*)ends;
    options.n_stop_tokens = (uint32_t)(*env)->GetArrayLength(env, stop_tokens);
    const int32_t* tokens = (const int32_t*)ids;
    status = is_session ? rl_session_generate(session_of(handle), tokens, n, &options, tell, &l,
                                              &statistics, &error)
                        : rl_llm_generate(model_of(handle), tokens, n, &options, tell, &l,
                                          &statistics, &error);
    rl_throw(env, status, &error);
  }
  if (ends != NULL) (*env)->ReleaseIntArrayElements(env, stop_tokens, ends, JNI_ABORT);
  if (ids != NULL) (*env)->ReleaseIntArrayElements(env, prompt, ids, JNI_ABORT);
  free_texts(stops, n_stop);
  return (*env)->ExceptionCheck(env) ? NULL : new_statistics(env, &statistics);
}

RL_JNI(jfloatArray, LanguageModel, embed)
(JNIEnv* env, jclass type, jlong model, jobjectArray texts, jboolean normalizes,
 jboolean truncates) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_llm_info info = {.size = sizeof info};
  if (rl_throw(env, rl_llm_describe(model_of(model), &info, &error), &error)) return NULL;
  const jsize n = (*env)->GetArrayLength(env, texts);
  const size_t count = (size_t)n * (size_t)info.hidden;
  jfloatArray made = NULL;
  float* vectors = malloc((count + 1) * sizeof *vectors);
  rl_text_v1* views = read_texts(env, texts, n, 0);
  if (vectors == NULL) rl_no_memory(env);
  if (vectors != NULL && views != NULL && !(*env)->ExceptionCheck(env)) {
    const rl_status status = rl_llm_embed(model_of(model), views, (uint32_t)n, normalizes,
                                          truncates, vectors, count, &error);
    if (!rl_throw(env, status, &error)) made = (*env)->NewFloatArray(env, (jsize)count);
    if (made != NULL) (*env)->SetFloatArrayRegion(env, made, 0, (jsize)count, vectors);
  }
  free_texts(views, n);
  free(vectors);
  return made;
}

RL_JNI(jlong, LanguageModel, openSession)(JNIEnv* env, jclass type, jlong model) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_session* session = NULL;
  rl_throw(env, rl_session_open(model_of(model), &session, &error), &error);
  return (jlong)(uintptr_t)session;
}

RL_JNI(jlong, LanguageModel, restore)
(JNIEnv* env, jclass type, jlong model, jbyteArray path, jlong adapter) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_session* session = NULL;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return 0;
  rl_throw(
      env,
      rl_session_restore(model_of(model), bytes, (rl_adapter*)(uintptr_t)adapter, &session, &error),
      &error);
  free(bytes);
  return (jlong)(uintptr_t)session;
}

RL_JNI(void, Session, closeSession)(JNIEnv* env, jclass type, jlong session) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_session_close(session_of(session), &error), &error);
}

RL_JNI(void, Session, cancel)(JNIEnv* env, jclass type, jlong session) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_session_cancel(session_of(session), &error), &error);
}

RL_JNI(jlong, Session, fork)(JNIEnv* env, jclass type, jlong session) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_session* copy = NULL;
  rl_throw(env, rl_session_fork(session_of(session), &copy, &error), &error);
  return (jlong)(uintptr_t)copy;
}

RL_JNI(void, Session, rewind)(JNIEnv* env, jclass type, jlong session, jlong count) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_session_rewind(session_of(session), (size_t)count, &error), &error);
}

RL_JNI(jintArray, Session, tokens)(JNIEnv* env, jclass type, jlong session) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  size_t count = 0;
  rl_status status = rl_session_tokens(session_of(session), NULL, 0, &count, &error);
  if (rl_throw(env, status, &error)) return NULL;
  int32_t* tokens = malloc((count + 1) * sizeof *tokens);
  if (tokens == NULL) return rl_no_memory(env);
  status = rl_session_tokens(session_of(session), tokens, count, &count, &error);
  jintArray made = rl_throw(env, status, &error) ? NULL : rl_new_ints(env, tokens, count);
  free(tokens);
  return made;
}

RL_JNI(void, Session, save)(JNIEnv* env, jclass type, jlong session, jbyteArray path) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return;
  rl_throw(env, rl_session_save(session_of(session), bytes, &error), &error);
  free(bytes);
}

RL_JNI(void, Session, setTokens)(JNIEnv* env, jclass type, jlong session, jintArray tokens) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  const size_t n = (size_t)(*env)->GetArrayLength(env, tokens);
  jint* ids = (*env)->GetIntArrayElements(env, tokens, NULL);
  if (ids == NULL) return;
  const rl_status status =
      rl_session_set_tokens(session_of(session), (const int32_t*)ids, n, &error);
  rl_throw(env, status, &error);
  (*env)->ReleaseIntArrayElements(env, tokens, ids, JNI_ABORT);
}

RL_JNI(jlong, LanguageModel, newGrammar)
(JNIEnv* env, jclass type, jlong model, jbyteArray text, jboolean is_schema) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_grammar* grammar = NULL;
  size_t size = 0;
  char* bytes = rl_bytes(env, text, &size);
  if (bytes == NULL) return 0;
  const rl_text_v1 view = {bytes, size};
  rl_throw(env,
           is_schema ? rl_grammar_from_json_schema(model_of(model), view, &grammar, &error)
                     : rl_grammar_from_regex(model_of(model), view, &grammar, &error),
           &error);
  free(bytes);
  return (jlong)(uintptr_t)grammar;
}

RL_JNI(void, Grammar, closeGrammar)(JNIEnv* env, jclass type, jlong grammar) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_grammar_close((rl_grammar*)(uintptr_t)grammar, &error), &error);
}

RL_JNI(jlong, LanguageModel, newAdapter)(JNIEnv* env, jclass type, jlong model, jbyteArray path) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_adapter* adapter = NULL;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return 0;
  rl_throw(env, rl_adapter_open(model_of(model), bytes, &adapter, &error), &error);
  free(bytes);
  return (jlong)(uintptr_t)adapter;
}

RL_JNI(void, Adapter, closeAdapter)(JNIEnv* env, jclass type, jlong adapter) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_adapter_close((rl_adapter*)(uintptr_t)adapter, &error), &error);
}

RL_JNI(void, LanguageModel, startTrace)
(JNIEnv* env, jclass type, jlong model, jint values, jlong bytes, jlong value_bytes) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  const rl_trace_options options = rl_traced(values, bytes, value_bytes);
  rl_throw(env, rl_llm_trace_start(model_of(model), &options, &error), &error);
}

RL_JNI(void, LanguageModel, stopTrace)(JNIEnv* env, jclass type, jlong model) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_llm_trace_stop(model_of(model), &error), &error);
}

RL_JNI(void, LanguageModel, saveTrace)(JNIEnv* env, jclass type, jlong model, jbyteArray path) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return;
  rl_throw(env, rl_llm_trace_save(model_of(model), bytes, &error), &error);
  free(bytes);
}
