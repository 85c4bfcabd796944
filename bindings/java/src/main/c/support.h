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

static inline jbyteArray rl_new_bytes(JNIEnv* env, const char* data, size_t size) {
  jbyteArray array = (*env)->NewByteArray(env, (jsize)size);
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)size, (const jbyte*)data);
  return array;
}

static inline jintArray rl_new_ints(JNIEnv* env, const int32_t* data, size_t size) {
  jintArray array = (*env)->NewIntArray(env, (jsize)size);
  if (array != NULL) (*env)->SetIntArrayRegion(env, array, 0, (jsize)size, (const jint*)data);
  return array;
}

#endif /* RUSHLIGHT_JAVA_SUPPORT_H_ */
