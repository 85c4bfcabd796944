/* What the JNI functions share: errors as exceptions, and arrays of Java as memory. */
#ifndef RUSHLIGHT_JAVA_SUPPORT_H_
#define RUSHLIGHT_JAVA_SUPPORT_H_

#include <jni.h>
#include <rushlight.h>
#include <stdlib.h>
#include <string.h>

/* Of class `type`, in package dev.rushlight. */
#define RL_JNI(result, type, name) JNIEXPORT result JNICALL Java_dev_rushlight_##type##_##name

/* Throws a RushlightException, unless an exception is there already; true if the call failed. */
static inline int rl_throw(JNIEnv* env, rl_status code, const rl_error* error) {
  if (code == RL_OK) return 0;
  if ((*env)->ExceptionCheck(env)) return 1;
  const jsize size = (jsize)strlen(error->text);
  jclass type = (*env)->FindClass(env, "dev/rushlight/RushlightException");
  jmethodID make = type ? (*env)->GetMethodID(env, type, "<init>", "(I[B)V") : NULL;
  jbyteArray text = make ? (*env)->NewByteArray(env, size) : NULL;
  if (text == NULL) return 1; /* an OutOfMemoryError was thrown */
  (*env)->SetByteArrayRegion(env, text, 0, size, (const jbyte*)error->text);
  jobject thrown = (*env)->NewObject(env, type, make, (jint)code, text);
  if (thrown != NULL) (*env)->Throw(env, (jthrowable)thrown);
  return 1;
}

/* Throws an OutOfMemoryError; NULL. */
static inline void* rl_no_memory(JNIEnv* env) {
  jclass type = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
  if (type != NULL) (*env)->ThrowNew(env, type, "native memory");
  return NULL;
}

/* A copy of an array's bytes, to be freed, with a NUL behind them; NULL with an exception. */
static inline char* rl_bytes(JNIEnv* env, jbyteArray array, size_t* size) {
  const jsize n = (*env)->GetArrayLength(env, array);
  char* bytes = malloc((size_t)n + 1);
  if (bytes == NULL) return rl_no_memory(env);
  (*env)->GetByteArrayRegion(env, array, 0, n, (jbyte*)bytes);
  bytes[n] = '\0';
  if (size != NULL) *size = (size_t)n;
  return bytes;
}

static inline jbyteArray rl_new_bytes(JNIEnv* env, const void* data, size_t size) {
  jbyteArray array = (*env)->NewByteArray(env, (jsize)size);
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)size, data);
  return array;
}

static inline jintArray rl_new_ints(JNIEnv* env, const int32_t* data, size_t size) {
  jintArray array = (*env)->NewIntArray(env, (jsize)size);
  if (array != NULL) (*env)->SetIntArrayRegion(env, array, 0, (jsize)size, (const jint*)data);
  return array;
}

/* The paths of an array, to be freed by rl_free_paths(); *count is 0 with an exception. */
static inline char** rl_paths(JNIEnv* env, jobjectArray array, uint32_t* count) {
  const jsize n = (*env)->GetArrayLength(env, array);
  char** paths = calloc((size_t)n + 1, sizeof *paths);
  *count = 0;
  if (paths == NULL) return rl_no_memory(env);
  for (jsize i = 0; i < n && !(*env)->ExceptionCheck(env); ++i) {
    jbyteArray one = (jbyteArray)(*env)->GetObjectArrayElement(env, array, i);
    if (one != NULL) paths[i] = rl_bytes(env, one, NULL);
    if (one != NULL) (*env)->DeleteLocalRef(env, one);
    *count = (uint32_t)i + 1;
  }
  return paths;
}

static inline void rl_free_paths(char** paths, uint32_t count) {
  for (uint32_t i = 0; paths != NULL && i < count; ++i) free(paths[i]);
  free(paths);
}

static inline rl_trace_options rl_traced(jint values, jlong bytes, jlong value_bytes) {
  const rl_trace_options options = {
      .size = sizeof options,
      .values = (uint32_t)values,
      .bytes = bytes > 0 ? (uint64_t)bytes : 0,
      .value_bytes = value_bytes > 0 ? (uint64_t)value_bytes : 0,
  };
  return options;
}

#endif /* RUSHLIGHT_JAVA_SUPPORT_H_ */
