/* dev.rushlight.Module and dev.rushlight.Rushlight. */
#include "support.h"

static rl_module* module_of(jlong handle) { return (rl_module*)(uintptr_t)handle; }

RL_JNI(jstring, Rushlight, version)(JNIEnv* env, jclass type) {
  (void)type;
  return (*env)->NewStringUTF(env, rl_version());
}

/* The options of a module, and the texts that they refer to. */
typedef struct opening {
  rl_module_options options;
  char* data;
  char** kernels;
  char** backends;
} opening;

static void free_opening(opening* o) {
  free(o->data);
  rl_free_paths(o->kernels, o->options.n_kernel_libraries);
  rl_free_paths(o->backends, o->options.n_backend_libraries);
}

/* False with an exception. */
static int read_opening(JNIEnv* env, jlongArray numbers, jbyteArray data, jobjectArray kernels,
                        jobjectArray backends, opening* o) {
  jlong n[7];
  (*env)->GetLongArrayRegion(env, numbers, 0, 7, n);
  const rl_module_options defaults = RL_MODULE_OPTIONS_INIT;
  *o = (opening){.options = defaults};
  o->options.threads = n[0] > 0 ? (uint32_t)n[0] : 0;
  o->options.memory_limit = n[1] > 0 ? (uint64_t)n[1] : 0;
  o->options.scratch_bytes = n[2] > 0 ? (uint64_t)n[2] : 0;
  o->options.max_instructions = n[3] > 0 ? (uint64_t)n[3] : 0;
  o->options.reads_file = n[4] != 0;
  o->options.guards_file = n[5] != 0;
  o->options.reports_failures = n[6] != 0;
  if (data != NULL) o->data = rl_bytes(env, data, NULL);
  o->kernels = rl_paths(env, kernels, &o->options.n_kernel_libraries);
  o->backends = rl_paths(env, backends, &o->options.n_backend_libraries);
  o->options.data_path = o->data;
  o->options.kernel_libraries = (const char* const*)o->kernels;
  o->options.backend_libraries = (const char* const*)o->backends;
  if (!(*env)->ExceptionCheck(env)) return 1;
  free_opening(o);
  return 0;
}

RL_JNI(jlong, Module, openFile)
(JNIEnv* env, jclass type, jbyteArray path, jlongArray numbers, jbyteArray data,
 jobjectArray kernels, jobjectArray backends) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_module* module = NULL;
  opening o;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes != NULL && read_opening(env, numbers, data, kernels, backends, &o)) {
    rl_throw(env, rl_module_open(bytes, &o.options, &module, &error), &error);
    free_opening(&o);
  }
  free(bytes);
  return (jlong)(uintptr_t)module;
}

RL_JNI(jlong, Module, openBuffer)
(JNIEnv* env, jclass type, jobject program, jlongArray numbers, jbyteArray data,
 jobjectArray kernels, jobjectArray backends) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_module* module = NULL;
  opening o;
  const void* bytes = (*env)->GetDirectBufferAddress(env, program);
  const size_t size = (size_t)(*env)->GetDirectBufferCapacity(env, program);
  if (read_opening(env, numbers, data, kernels, backends, &o)) {
    rl_throw(env, rl_module_open_memory(bytes, size, &o.options, &module, &error), &error);
    free_opening(&o);
  }
  return (jlong)(uintptr_t)module;
}

RL_JNI(void, Module, closeModule)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_module_close(module_of(module), &error), &error);
}

RL_JNI(jobjectArray, Module, methodNames)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_module_info info = {.size = sizeof info};
  if (rl_throw(env, rl_module_describe(module_of(module), &info, &error), &error)) return NULL;
  jclass bytes = (*env)->FindClass(env, "[B");
  if (bytes == NULL) return NULL;
  jobjectArray names = (*env)->NewObjectArray(env, (jsize)info.n_methods, bytes, NULL);
  for (uint32_t i = 0; names != NULL && i < info.n_methods; ++i) {
    rl_text_v1 name = {NULL, 0};
    const rl_status status = rl_module_method_name(module_of(module), i, &name, &error);
    if (rl_throw(env, status, &error)) return NULL;
    jbyteArray text = rl_new_bytes(env, name.data, name.size);
    if (text == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, names, (jsize)i, text);
    (*env)->DeleteLocalRef(env, text);
  }
  return names;
}

static jobject new_info(JNIEnv* env, jclass type, const rl_value_info* info) {
  jmethodID make = (*env)->GetMethodID(env, type, "<init>", "([BII[I[I)V");
  jbyteArray name = make ? rl_new_bytes(env, info->name.data, info->name.size) : NULL;
  jintArray least = name ? rl_new_ints(env, info->min_sizes, info->rank) : NULL;
  jintArray most = least ? rl_new_ints(env, info->max_sizes, info->rank) : NULL;
  if (most == NULL) return NULL;
  return (*env)->NewObject(env, type, make, name, (jint)info->kind, (jint)info->dtype, least, most);
}

RL_JNI(jobjectArray, Module, describe)
(JNIEnv* env, jclass type, jlong module, jbyteArray method, jboolean is_input) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_method_info known = {.size = sizeof known};
  jobjectArray infos = NULL;
  char* name = rl_bytes(env, method, NULL);
  if (name == NULL) return NULL;
  rl_status status = rl_module_describe_method(module_of(module), name, &known, &error);
  const uint32_t n = is_input ? known.n_inputs : known.n_outputs;
  jclass info_type = (*env)->FindClass(env, "dev/rushlight/ValueInfo");
  if (status == RL_OK && info_type != NULL) {
    infos = (*env)->NewObjectArray(env, (jsize)n, info_type, NULL);
  }
  for (uint32_t i = 0; infos != NULL && status == RL_OK && i < n; ++i) {
    rl_value_info info = {.size = sizeof info};
    status = is_input ? rl_module_describe_input(module_of(module), name, i, &info, &error)
                      : rl_module_describe_output(module_of(module), name, i, &info, &error);
    if (status != RL_OK || (*env)->PushLocalFrame(env, 8) != 0) break;
    jobject made = new_info(env, info_type, &info);
    if (made != NULL) (*env)->SetObjectArrayElement(env, infos, (jsize)i, made);
    (*env)->PopLocalFrame(env, NULL);
    if (made == NULL) break;
  }
  free(name);
  return rl_throw(env, status, &error) ? NULL : infos;
}

/* Memory of one run. */
typedef struct call {
  rl_value_v1* inputs;
  rl_value_v1* outputs;
  int32_t* sizes; /* RL_MAX_RANK of each input */
  char** texts;   /* of inputs that are strings */
  jsize n_inputs;
  uint32_t n_outputs;
} call;

static void free_call(call* c) {
  for (jsize i = 0; c->texts != NULL && i < c->n_inputs; ++i) free(c->texts[i]);
  free(c->texts);
  free(c->sizes);
  free(c->outputs);
  free(c->inputs);
}

static int make_call(JNIEnv* env, call* c) {
  const size_t n = (size_t)c->n_inputs + 1;
  c->inputs = calloc(n, sizeof *c->inputs);
  c->outputs = calloc((size_t)c->n_outputs + 1, sizeof *c->outputs);
  c->sizes = calloc(n * RL_MAX_RANK, sizeof *c->sizes);
  c->texts = calloc(n, sizeof *c->texts);
  if (c->inputs && c->outputs && c->sizes && c->texts) return 1;
  rl_no_memory(env);
  return 0;
}

static void read_tensor(JNIEnv* env, call* c, jsize i, jobject buffer, jint dtype,
                        jobjectArray sizes) {
  rl_value_v1* value = &c->inputs[i];
  jintArray own = (jintArray)(*env)->GetObjectArrayElement(env, sizes, i);
  const jsize rank = (*env)->GetArrayLength(env, own);
  int32_t* to = c->sizes + (size_t)i * RL_MAX_RANK;
  if (rank <= RL_MAX_RANK) (*env)->GetIntArrayRegion(env, own, 0, rank, (jint*)to);
  value->data = (*env)->GetDirectBufferAddress(env, buffer);
  value->nbytes = (size_t)(*env)->GetDirectBufferCapacity(env, buffer);
  value->dtype = dtype;
  value->rank = (uint32_t)rank; /* beyond RL_MAX_RANK it is refused */
  value->sizes = to;
  (*env)->DeleteLocalRef(env, own);
}

/* The number in a Long, a Double or a Boolean. */
static void read_number(JNIEnv* env, rl_value_v1* value, jobject input) {
  jclass type = (*env)->GetObjectClass(env, input);
  if (value->kind == RL_DOUBLE) {
    jmethodID get = (*env)->GetMethodID(env, type, "doubleValue", "()D");
    value->d = (*env)->CallDoubleMethod(env, input, get);
  } else if (value->kind == RL_BOOL) {
    jmethodID get = (*env)->GetMethodID(env, type, "booleanValue", "()Z");
    value->i = (*env)->CallBooleanMethod(env, input, get) ? 1 : 0;
  } else {
    jmethodID get = (*env)->GetMethodID(env, type, "longValue", "()J");
    value->i = (*env)->CallLongMethod(env, input, get);
  }
}

static void read_inputs(JNIEnv* env, call* c, jobjectArray inputs, const jint* kinds,
                        const jint* dtypes, jobjectArray sizes) {
  for (jsize i = 0; i < c->n_inputs && !(*env)->ExceptionCheck(env); ++i) {
    if ((*env)->PushLocalFrame(env, 8) != 0) return;
    jobject input = (*env)->GetObjectArrayElement(env, inputs, i);
    rl_value_v1* value = &c->inputs[i];
    value->size = sizeof *value;
    value->kind = (uint32_t)kinds[i];
    if (value->kind == RL_TENSOR) {
      read_tensor(env, c, i, input, dtypes[i], sizes);
    } else if (value->kind == RL_STRING) {
      size_t size = 0;
      c->texts[i] = rl_bytes(env, (jbyteArray)input, &size);
      value->text.data = c->texts[i];
      value->text.size = size > 0 ? size - 1 : 0; /* without its NUL */
    } else if (value->kind != RL_NONE) {
      read_number(env, value, input);
    }
    (*env)->PopLocalFrame(env, NULL);
  }
}

/* {dtype}, sizes, and a direct buffer of its own with the elements in row-major order; without one
 * if the elements are in memory of the caller. */
static jobject new_tensor(JNIEnv* env, const rl_value_v1* value, int is_kept) {
  jclass buffers = (*env)->FindClass(env, "java/nio/ByteBuffer");
  jclass objects = (*env)->FindClass(env, "java/lang/Object");
  jmethodID allocate =
      buffers ? (*env)->GetStaticMethodID(env, buffers, "allocateDirect", "(I)Ljava/nio/ByteBuffer;")
              : NULL;
  if (allocate == NULL || objects == NULL) return NULL;
  jobject buffer =
      is_kept ? NULL
              : (*env)->CallStaticObjectMethod(env, buffers, allocate, (jint)value->nbytes);
  if ((*env)->ExceptionCheck(env)) return NULL;
  jobjectArray parts = (*env)->NewObjectArray(env, 3, objects, NULL);
  jintArray dtype = parts ? rl_new_ints(env, &value->dtype, 1) : NULL;
  jintArray sizes = dtype ? rl_new_ints(env, value->sizes, value->rank) : NULL;
  if (sizes == NULL) return NULL;
  (*env)->SetObjectArrayElement(env, parts, 0, dtype);
  (*env)->SetObjectArrayElement(env, parts, 1, sizes);
  if (is_kept) return parts;
  int64_t count = 1;
  for (uint32_t k = 0; k < value->rank; ++k) count *= value->sizes[k];
  const size_t bytes = count > 0 ? value->nbytes / (size_t)count : 0;
  char* to = (*env)->GetDirectBufferAddress(env, buffer);
  int32_t at[RL_MAX_RANK] = {0};
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i, to += bytes) {
    memcpy(to, (const char*)value->data + (size_t)from * bytes, bytes);
    for (uint32_t k = value->rank; k-- > 0;) {
      from += value->strides[k];
      if (++at[k] < value->sizes[k]) break;
      from -= (int64_t)value->strides[k] * value->sizes[k];
      at[k] = 0;
    }
  }
  (*env)->SetObjectArrayElement(env, parts, 2, buffer);
  return parts;
}

static jobject box(JNIEnv* env, const char* name, const char* signature, jvalue value) {
  jclass type = (*env)->FindClass(env, name);
  jmethodID of = type ? (*env)->GetStaticMethodID(env, type, "valueOf", signature) : NULL;
  return of ? (*env)->CallStaticObjectMethodA(env, type, of, &value) : NULL;
}

static jobject new_output(JNIEnv* env, const rl_value_v1* value, int is_kept) {
  switch (value->kind) {
    case RL_TENSOR:
      return new_tensor(env, value, is_kept);
    case RL_INT:
      return box(env, "java/lang/Long", "(J)Ljava/lang/Long;", (jvalue){.j = value->i});
    case RL_BOOL:
      return box(env, "java/lang/Boolean", "(Z)Ljava/lang/Boolean;",
                 (jvalue){.z = (jboolean)(value->i != 0)});
    case RL_DOUBLE:
      return box(env, "java/lang/Double", "(D)Ljava/lang/Double;", (jvalue){.d = value->d});
    case RL_STRING:
      return rl_new_bytes(env, value->text.data, value->text.size);
    default:
      return NULL; /* None, or a list, which has no values here */
  }
}

static jobjectArray new_outputs(JNIEnv* env, const call* c, const jint* kept, jsize n_kept) {
  jclass type = (*env)->FindClass(env, "java/lang/Object");
  if (type == NULL) return NULL;
  jobjectArray outputs = (*env)->NewObjectArray(env, (jsize)c->n_outputs, type, NULL);
  for (uint32_t i = 0; outputs != NULL && i < c->n_outputs; ++i) {
    if ((*env)->PushLocalFrame(env, 16) != 0) return NULL;
    int is_kept = 0;
    for (jsize k = 0; k < n_kept; ++k) is_kept = is_kept || (uint32_t)kept[k] == i;
    jobject output = new_output(env, &c->outputs[i], is_kept);
    if (output != NULL) (*env)->SetObjectArrayElement(env, outputs, (jsize)i, output);
    (*env)->PopLocalFrame(env, NULL);
    if ((*env)->ExceptionCheck(env)) return NULL;
  }
  return outputs;
}

RL_JNI(jobjectArray, Module, run)
(JNIEnv* env, jclass type, jlong module, jbyteArray method, jobjectArray inputs, jintArray kinds,
 jintArray dtypes, jobjectArray sizes, jintArray kept) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_method_info known = {.size = sizeof known};
  jobjectArray outputs = NULL;
  char* name = rl_bytes(env, method, NULL);
  if (name == NULL) return NULL;
  rl_status status = rl_module_describe_method(module_of(module), name, &known, &error);
  call c = {.n_inputs = (*env)->GetArrayLength(env, inputs), .n_outputs = known.n_outputs};
  jint* kind = (*env)->GetIntArrayElements(env, kinds, NULL);
  jint* dtype = (*env)->GetIntArrayElements(env, dtypes, NULL);
  jint* own = (*env)->GetIntArrayElements(env, kept, NULL);
  if (status == RL_OK && kind != NULL && dtype != NULL && own != NULL && make_call(env, &c)) {
    read_inputs(env, &c, inputs, kind, dtype, sizes);
    for (uint32_t i = 0; i < c.n_outputs; ++i) c.outputs[i].size = sizeof *c.outputs;
    if (!(*env)->ExceptionCheck(env)) {
      status = rl_module_run(module_of(module), name, c.inputs, (uint32_t)c.n_inputs, c.outputs,
                             c.n_outputs, &error);
      if (status == RL_OK) outputs = new_outputs(env, &c, own, (*env)->GetArrayLength(env, kept));
    }
  }
  if (kind != NULL) (*env)->ReleaseIntArrayElements(env, kinds, kind, JNI_ABORT);
  if (dtype != NULL) (*env)->ReleaseIntArrayElements(env, dtypes, dtype, JNI_ABORT);
  if (own != NULL) (*env)->ReleaseIntArrayElements(env, kept, own, JNI_ABORT);
  free_call(&c);
  free(name);
  return rl_throw(env, status, &error) ? NULL : outputs;
}

RL_JNI(void, Module, cancel)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_module_cancel(module_of(module), &error), &error);
}

RL_JNI(jlong, Module, copy)(JNIEnv* env, jclass type, jlong module, jboolean with_state) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_module* copy = NULL;
  rl_throw(env,
           with_state ? rl_module_fork(module_of(module), &copy, &error)
                      : rl_module_clone(module_of(module), &copy, &error),
           &error);
  return (jlong)(uintptr_t)copy;
}

RL_JNI(jbyteArray, Module, snapshot)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  size_t size = 0;
  rl_status status = rl_module_snapshot(module_of(module), NULL, 0, &size, &error);
  if (rl_throw(env, status, &error)) return NULL;
  char* bytes = malloc(size + 1);
  if (bytes == NULL) return rl_no_memory(env);
  status = rl_module_snapshot(module_of(module), bytes, size, NULL, &error);
  jbyteArray saved = rl_throw(env, status, &error) ? NULL : rl_new_bytes(env, bytes, size);
  free(bytes);
  return saved;
}

RL_JNI(void, Module, restore)(JNIEnv* env, jclass type, jlong module, jbyteArray snapshot) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  size_t size = 0;
  char* bytes = rl_bytes(env, snapshot, &size);
  if (bytes == NULL) return;
  rl_throw(env, rl_module_restore(module_of(module), bytes, size, &error), &error);
  free(bytes);
}

RL_JNI(void, Module, resetState)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_module_reset_state(module_of(module), &error), &error);
}

RL_JNI(void, Module, seed)(JNIEnv* env, jclass type, jlong module, jlong seed) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_module_seed(module_of(module), (uint64_t)seed, &error), &error);
}

RL_JNI(jobjectArray, Module, relations)
(JNIEnv* env, jclass type, jlong module, jbyteArray method) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  uint32_t count = 0;
  jobjectArray texts = NULL;
  char* name = rl_bytes(env, method, NULL);
  if (name == NULL) return NULL;
  rl_status status = rl_module_relation_count(module_of(module), name, &count, &error);
  jclass bytes = (*env)->FindClass(env, "[B");
  if (status == RL_OK && bytes != NULL) {
    texts = (*env)->NewObjectArray(env, (jsize)count, bytes, NULL);
  }
  for (uint32_t i = 0; texts != NULL && status == RL_OK && i < count; ++i) {
    rl_text_v1 text = {NULL, 0};
    status = rl_module_relation(module_of(module), name, i, &text, &error);
    jbyteArray made = status == RL_OK ? rl_new_bytes(env, text.data, text.size) : NULL;
    if (made == NULL) break;
    (*env)->SetObjectArrayElement(env, texts, (jsize)i, made);
    (*env)->DeleteLocalRef(env, made);
  }
  free(name);
  return rl_throw(env, status, &error) ? NULL : texts;
}

RL_JNI(jlong, Module, memoryInUse)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_module_info info = {.size = sizeof info};
  rl_throw(env, rl_module_describe(module_of(module), &info, &error), &error);
  return (jlong)info.memory_in_use;
}

RL_JNI(void, Module, load)
(JNIEnv* env, jclass type, jlong module, jbyteArray method, jboolean is_load) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  char* name = rl_bytes(env, method, NULL);
  if (name == NULL) return;
  rl_throw(env,
           is_load ? rl_module_load(module_of(module), name, &error)
                   : rl_module_unload(module_of(module), name, &error),
           &error);
  free(name);
}

RL_JNI(void, Module, setOutput)
(JNIEnv* env, jclass type, jlong module, jbyteArray method, jint index, jobject to) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  char* name = rl_bytes(env, method, NULL);
  if (name == NULL) return;
  void* data = to != NULL ? (*env)->GetDirectBufferAddress(env, to) : NULL;
  const size_t bytes = to != NULL ? (size_t)(*env)->GetDirectBufferCapacity(env, to) : 0;
  const rl_status status =
      rl_module_set_output(module_of(module), name, (uint32_t)index, data, bytes, &error);
  rl_throw(env, status, &error);
  free(name);
}

RL_JNI(void, Module, startTrace)
(JNIEnv* env, jclass type, jlong module, jint values, jlong bytes, jlong value_bytes) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  const rl_trace_options options = rl_traced(values, bytes, value_bytes);
  rl_throw(env, rl_module_trace_start(module_of(module), &options, &error), &error);
}

RL_JNI(void, Module, stopTrace)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_throw(env, rl_module_trace_stop(module_of(module), &error), &error);
}

RL_JNI(void, Module, saveTrace)(JNIEnv* env, jclass type, jlong module, jbyteArray path) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  char* bytes = rl_bytes(env, path, NULL);
  if (bytes == NULL) return;
  rl_throw(env, rl_module_trace_save(module_of(module), bytes, &error), &error);
  free(bytes);
}

RL_JNI(jbyteArray, Module, failureReport)(JNIEnv* env, jclass type, jlong module) {
  (void)type;
  rl_error error = RL_ERROR_INIT;
  rl_bytes_v1 report = {NULL, 0};
  const rl_status status = rl_module_failure_report(module_of(module), &report, &error);
  return rl_throw(env, status, &error) ? NULL : rl_new_bytes(env, report.data, report.size);
}
