/* dev.rushlight.LanguageModel and dev.rushlight.Session. */
#include "support.h"

static rl_llm* model_of(jlong handle) { return (rl_llm*)(uintptr_t)handle; }
static rl_session* session_of(jlong handle) { return (rl_session*)(uintptr_t)handle; }

RL_JNI(jlong, LanguageModel, openFile)
(JNIEnv* env, jclass type, jbyteArray path, jint threads) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_llm* model = NULL;
  rl_llm_options options = {.size = sizeof options};
  options.threads = threads > 0 ? (uint32_t)threads : 0;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return 0;
  rl_throw(env, rl_llm_open(bytes, &options, &model, &error), &error);
  free(bytes);
  return (jlong)(uintptr_t)model;
}

RL_JNI(void, LanguageModel, closeModel)(JNIEnv* env, jclass type, jlong model) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_llm_close(model_of(model), &error), &error);
}

/* The tokens of a text, or of a conversation in JSON. */
static jintArray encode(JNIEnv* env, rl_llm* model, jbyteArray text, int is_chat) {
  rl_error error = RL_ERROR_INIT;
  size_t size = 0, count = 0;
  jintArray made = NULL;
  int32_t* tokens = NULL;
  char* bytes = rl_bytes(env, text, &size);
  if (bytes == NULL) return NULL;
  const rl_text_v1 view = {bytes, size};
  rl_status status =
      is_chat ? rl_llm_encode_chat(model, view, NULL, 0, &count, &error)
              : rl_llm_encode(model, view, RL_ADD_SPECIAL, NULL, 0, &count, &error);
  if (status == RL_OK) tokens = malloc((count + 1) * sizeof *tokens);
  if (status == RL_OK && tokens == NULL) rl_no_memory(env);
  if (tokens != NULL) {
    status = is_chat ? rl_llm_encode_chat(model, view, tokens, count, &count, &error)
                     : rl_llm_encode(model, view, RL_ADD_SPECIAL, tokens, count, &count, &error);
    if (status == RL_OK) made = rl_new_ints(env, tokens, count);
  }
  rl_throw(env, status, &error);
  free(tokens);
  free(bytes);
  return made;
}

RL_JNI(jintArray, LanguageModel, encode)
(JNIEnv* env, jclass type, jlong model, jbyteArray text) {
  (void)type;
  return encode(env, model_of(model), text, 0);
}

RL_JNI(jintArray, LanguageModel, encodeChat)
(JNIEnv* env, jclass type, jlong model, jbyteArray json) {
  (void)type;
  return encode(env, model_of(model), json, 1);
}

RL_JNI(jbyteArray, LanguageModel, decode)
(JNIEnv* env, jclass type, jlong model, jintArray tokens) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  size_t count = 0;
  jbyteArray made = NULL;
  const size_t n = (size_t)(*env)->GetArrayLength(env, tokens);
  jint* ids = (*env)->GetIntArrayElements(env, tokens, NULL);
  if (ids == NULL) return NULL;
  const uint32_t flags = RL_SKIP_SPECIAL;
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
  const jlong whole[] = {o.n, (jlong)o.max_tokens, (jlong)o.seed, o.top_k, o.ignores_end};
  const jfloat real[] = {o.temperature, o.top_p, o.min_p, o.repetition_penalty};
  (*env)->SetLongArrayRegion(env, integers, 0, 5, whole);
  (*env)->SetFloatArrayRegion(env, numbers, 0, 4, real);
}

static void read_options(JNIEnv* env, jlongArray integers, jfloatArray numbers,
                         rl_generate_options* o) {
  jlong whole[5];
  jfloat real[4];
  (*env)->GetLongArrayRegion(env, integers, 0, 5, whole);
  (*env)->GetFloatArrayRegion(env, numbers, 0, 4, real);
  o->n = (uint32_t)whole[0];
  o->max_tokens = (uint64_t)whole[1];
  o->seed = (uint64_t)whole[2];
  o->top_k = (uint32_t)whole[3];
  o->ignores_end = whole[4] != 0;
  o->temperature = real[0];
  o->top_p = real[1];
  o->min_p = real[2];
  o->repetition_penalty = real[3];
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
  jboolean goes_on = JNI_FALSE;
  if (tokens != NULL) {
    goes_on = (*env)->CallStaticBooleanMethod(env, l->models, l->tell, l->listener,
                                              (jint)piece->choice, text, tokens);
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

RL_JNI(jlong, LanguageModel, generate)
(JNIEnv* env, jclass type, jlong handle, jboolean is_session, jintArray prompt,
 jlongArray integers, jfloatArray numbers, jobjectArray stop, jobject listener) {
  rl_error error = RL_ERROR_INIT;
  rl_generate_options options = {.size = sizeof options};
  options.typical_p = 1;
  options.logprobs = -1;
  read_options(env, integers, numbers, &options);
  listening l = {env, listener, type, NULL};
  l.tell = (*env)->GetStaticMethodID(env, type, "tell",
                                     "(Ldev/rushlight/TextListener;I[B[I)Z");
  const jsize n_stop = (*env)->GetArrayLength(env, stop);
  const size_t n = (size_t)(*env)->GetArrayLength(env, prompt);
  rl_text_v1* stops = l.tell ? read_texts(env, stop, n_stop, 1) : NULL;
  jint* ids = stops ? (*env)->GetIntArrayElements(env, prompt, NULL) : NULL;
  rl_statistics statistics = {.size = sizeof statistics};
  if (ids != NULL && !(*env)->ExceptionCheck(env)) {
    options.stop = stops;
    options.n_stop = (uint32_t)n_stop;
    const int32_t* tokens = (const int32_t*)ids;
    const rl_status status =
        is_session ? rl_session_generate(session_of(handle), tokens, n, &options, tell, &l,
                                         &statistics, &error)
                   : rl_llm_generate(model_of(handle), tokens, n, &options, tell, &l, &statistics,
                                     &error);
    rl_throw(env, status, &error);
  }
  if (ids != NULL) (*env)->ReleaseIntArrayElements(env, prompt, ids, JNI_ABORT);
  free_texts(stops, n_stop);
  return (jlong)statistics.output_tokens;
}

RL_JNI(jfloatArray, LanguageModel, embed)
(JNIEnv* env, jclass type, jlong model, jobjectArray texts) {
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
    const rl_status status =
        rl_llm_embed(model_of(model), views, (uint32_t)n, 1, 0, vectors, count, &error);
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

RL_JNI(jlong, LanguageModel, restore)(JNIEnv* env, jclass type, jlong model, jbyteArray path) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_session* session = NULL;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return 0;
  rl_throw(env, rl_session_restore(model_of(model), bytes, NULL, &session, &error), &error);
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
