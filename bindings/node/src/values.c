/* Values of JavaScript as C, and errors. */
#include <stdio.h>

#include "support.h"

bool has_exception(napi_env env) {
  bool is_pending = false;
  return napi_is_exception_pending(env, &is_pending) != napi_ok || is_pending;
}

void* throw_napi(napi_env env) {
  const napi_extended_error_info* info = NULL;
  if (has_exception(env)) return NULL;
  napi_get_last_error_info(env, &info);
  const char* text = info != NULL && info->error_message != NULL ? info->error_message : "";
  napi_throw_error(env, NULL, text);
  return NULL;
}

static void text_name(const char* data, rl_text_v1* text) {
  text->data = data;
  text->size = strlen(data);
}

napi_value failure_value(napi_env env, rl_status status, const rl_error* error) {
  rl_text_v1 text;
  napi_value failure = new_object(env);
  set_number(env, failure, "code", status);
  text_name(error->text, &text);
  set_text(env, failure, "text", text);
  if (error->instruction != RL_NO_INDEX) {
    set_number(env, failure, "instruction", error->instruction);
  }
  if (error->delegate != RL_NO_INDEX) set_number(env, failure, "delegate", error->delegate);
  return failure;
}

void* throw_status(napi_env env, rl_status status, const rl_error* error) {
  if (has_exception(env)) return NULL;
  napi_value failure = failure_value(env, status, error);
  if (failure != NULL) napi_throw(env, failure);
  return NULL;
}

void* throw_text(napi_env env, rl_status status, const char* text) {
  rl_error error = RL_ERROR_INIT;
  snprintf(error.text, sizeof error.text, "%s", text);
  return throw_status(env, status, &error);
}

void* throw_no_memory(napi_env env) {
  return throw_text(env, RL_MEMORY_ALLOCATION_FAILED, "there is not enough memory left");
}

bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value* arguments) {
  if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) == napi_ok) return true;
  throw_napi(env);
  return false;
}

char* read_text(napi_env env, napi_value value, size_t* size) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return throw_napi(env);
  char* text = malloc(length + 1);
  if (text == NULL) return throw_no_memory(env);
  napi_get_value_string_utf8(env, value, text, length + 1, &length);
  if (size != NULL) *size = length;
  return text;
}

bool read_texts(napi_env env, napi_value array, text_list* texts) {
  uint32_t count = 0;
  if (napi_get_array_length(env, array, &count) != napi_ok) return throw_napi(env) != NULL;
  texts->items = calloc((size_t)count + 1, sizeof *texts->items);
  texts->views = calloc((size_t)count + 1, sizeof *texts->views);
  if (texts->items == NULL || texts->views == NULL) return throw_no_memory(env) != NULL;
  for (; texts->count < count; ++texts->count) {
    napi_value item;
    if (napi_get_element(env, array, texts->count, &item) != napi_ok) {
      return throw_napi(env) != NULL;
    }
    rl_text_v1* text = &texts->views[texts->count];
    char* data = read_text(env, item, &text->size);
    if (data == NULL) return false;
    texts->items[texts->count] = data;
    text->data = data;
  }
  return true;
}

void free_texts(text_list* texts) {
  for (uint32_t i = 0; i < texts->count; ++i) free(texts->items[i]);
  free(texts->items);
  free(texts->views);
}

napi_value get_field(napi_env env, napi_value object, const char* name) {
  napi_value value = NULL;
  napi_valuetype type = napi_undefined;
  if (napi_get_named_property(env, object, name, &value) != napi_ok) return NULL;
  if (napi_typeof(env, value, &type) != napi_ok) return NULL;
  return type == napi_undefined || type == napi_null ? NULL : value;
}

uint64_t get_whole(napi_env env, napi_value object, const char* name) {
  uint64_t whole = 0;
  bool is_lossless = false;
  int64_t number = 0;
  napi_value value = get_field(env, object, name);
  if (value == NULL) return 0;
  if (napi_get_value_bigint_uint64(env, value, &whole, &is_lossless) == napi_ok) return whole;
  napi_get_value_int64(env, value, &number);
  return (uint64_t)number;
}

double get_real(napi_env env, napi_value object, const char* name) {
  double number = 0;
  napi_value value = get_field(env, object, name);
  if (value != NULL) napi_get_value_double(env, value, &number);
  return number;
}

char* get_text(napi_env env, napi_value object, const char* name) {
  napi_value value = get_field(env, object, name);
  return value != NULL ? read_text(env, value, NULL) : NULL;
}

bool get_texts(napi_env env, napi_value object, const char* name, text_list* texts) {
  napi_value array = get_field(env, object, name);
  return array == NULL || read_texts(env, array, texts);
}

void set_value(napi_env env, napi_value object, const char* name, napi_value value) {
  if (object == NULL || value == NULL) return;
  if (napi_set_named_property(env, object, name, value) != napi_ok) throw_napi(env);
}

void set_number(napi_env env, napi_value object, const char* name, double number) {
  napi_value value = NULL;
  if (napi_create_double(env, number, &value) != napi_ok) throw_napi(env);
  set_value(env, object, name, value);
}

void set_whole(napi_env env, napi_value object, const char* name, uint64_t number) {
  napi_value value = NULL;
  if (napi_create_bigint_uint64(env, number, &value) != napi_ok) throw_napi(env);
  set_value(env, object, name, value);
}

void set_text(napi_env env, napi_value object, const char* name, rl_text_v1 text) {
  napi_value value = NULL;
  const char* data = text.data != NULL ? text.data : "";
  if (napi_create_string_utf8(env, data, text.size, &value) != napi_ok) throw_napi(env);
  set_value(env, object, name, value);
}

void set_numbers(napi_env env, napi_value object, const char* name, const int32_t* numbers,
                 size_t count) {
  napi_value array = new_array(env);
  for (size_t i = 0; array != NULL && i < count; ++i) {
    napi_value number = NULL;
    if (napi_create_int32(env, numbers[i], &number) != napi_ok ||
        napi_set_element(env, array, (uint32_t)i, number) != napi_ok) {
      throw_napi(env);
      return;
    }
  }
  set_value(env, object, name, array);
}

napi_value new_object(napi_env env) {
  napi_value object = NULL;
  if (napi_create_object(env, &object) != napi_ok) throw_napi(env);
  return object;
}

napi_value new_array(napi_env env) {
  napi_value array = NULL;
  if (napi_create_array(env, &array) != napi_ok) throw_napi(env);
  return array;
}

napi_value new_items(napi_env env, napi_typedarray_type type, const void* items, size_t count) {
  napi_value buffer = NULL, array = NULL;
  void* data = NULL;
  const size_t bytes = count * 4;
  if (napi_create_arraybuffer(env, bytes, &data, &buffer) != napi_ok) return throw_napi(env);
  if (bytes > 0) memcpy(data, items, bytes);
  if (napi_create_typedarray(env, type, count, buffer, 0, &array) != napi_ok) {
    return throw_napi(env);
  }
  return array;
}
