/* Memory, views and handles that are counted. */
#include <stdint.h>

#include "support.h"

enum { ALIGNMENT = 64 };

/* Marks the ArrayBuffers that memory_buffer() makes. */
static const napi_type_tag buffer_tag = {0x8d1f0c9b52e74a63ull, 0xb1c6e5d2077f4a08ull};

memory* memory_new(size_t bytes) {
  if (bytes > SIZE_MAX - sizeof(memory) - ALIGNMENT) return NULL;
  memory* m = malloc(sizeof *m + ALIGNMENT + bytes);
  if (m == NULL) return NULL;
  atomic_init(&m->owners, 1);
  m->bytes = bytes;
  const uintptr_t first = (uintptr_t)(m + 1);
  m->data = (char*)(m + 1) + (ALIGNMENT - first % ALIGNMENT) % ALIGNMENT;
  return m;
}

memory* memory_hold(memory* m) {
  atomic_fetch_add(&m->owners, 1);
  return m;
}

void memory_drop(memory* m) {
  if (m != NULL && atomic_fetch_sub(&m->owners, 1) == 1) free(m);
}

static void drop_of_buffer(napi_env env, void* data, void* hint) {
  (void)env;
  (void)data;
  memory_drop(hint);
}

static void drop_of_wrap(napi_env env, void* data, void* hint) {
  (void)env;
  (void)hint;
  memory_drop(data);
}

napi_value memory_buffer(napi_env env, memory* m) {
  napi_value buffer = NULL;
  napi_status status = napi_no_external_buffers_allowed;
  if (m->bytes > 0) {
    status = napi_create_external_arraybuffer(env, m->data, m->bytes, drop_of_buffer, m, &buffer);
  }
  if (status == napi_ok) {
    /* The wrap is a second owner: it finds the memory again, even if the buffer was detached. */
    memory_hold(m);
    if (napi_wrap(env, buffer, m, drop_of_wrap, NULL, NULL) != napi_ok) {
      memory_drop(m);
      return throw_napi(env);
    }
    return napi_type_tag_object(env, buffer, &buffer_tag) == napi_ok ? buffer : throw_napi(env);
  }
  /* Empty, or a host that allows none, such as Electron: a copy. */
  void* data = NULL;
  if (status == napi_no_external_buffers_allowed &&
      napi_create_arraybuffer(env, m->bytes, &data, &buffer) == napi_ok) {
    if (m->bytes > 0) memcpy(data, m->data, m->bytes);
    memory_drop(m);
    return buffer;
  }
  memory_drop(m);
  return throw_napi(env);
}

/* The memory of a buffer that memory_buffer() gave, not held; NULL for another one. */
static memory* memory_behind(napi_env env, napi_value buffer) {
  bool is_ours = false;
  void* m = NULL;
  if (napi_check_object_type_tag(env, buffer, &buffer_tag, &is_ours) != napi_ok || !is_ours) {
    return NULL;
  }
  return napi_unwrap(env, buffer, &m) == napi_ok ? m : NULL;
}

typedef struct array_info {
  napi_value buffer;
  char* data;
  size_t bytes;
  bool is_shared; /* it lies in a SharedArrayBuffer, which is never detached and never shrinks */
} array_info;

static bool read_array(napi_env env, napi_value array, array_info* a) {
  napi_typedarray_type type;
  size_t length = 0, offset = 0;
  void* data = NULL;
  bool is_plain = false;
  if (napi_get_typedarray_info(env, array, &type, &length, &data, &a->buffer, &offset) != napi_ok ||
      napi_is_arraybuffer(env, a->buffer, &is_plain) != napi_ok) {
    return throw_napi(env) != NULL;
  }
  static const size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};
  a->bytes = length * ((size_t)type < sizeof sizes / sizeof *sizes ? sizes[type] : 1);
  a->data = data;
  a->is_shared = !is_plain;
  return true;
}

static memory* copy_of(napi_env env, const array_info* a) {
  memory* m = memory_new(a->bytes);
  if (m == NULL) return throw_no_memory(env);
  if (a->bytes > 0) memcpy(m->data, a->data, a->bytes);
  return m;
}

memory* memory_of_bytes(napi_env env, napi_value bytes) {
  array_info a;
  if (!read_array(env, bytes, &a)) return NULL;
  memory* m = memory_behind(env, a.buffer);
  if (m != NULL && a.data == m->data && a.bytes == m->bytes) return memory_hold(m);
  return copy_of(env, &a);
}

bool view_open(napi_env env, napi_value array, bool writes, view* v) {
  array_info a;
  if (!read_array(env, array, &a)) return false;
  v->data = a.data;
  v->bytes = a.bytes;
  memory* m = memory_behind(env, a.buffer);
  if (m != NULL) {
    v->kept = memory_hold(m);
  } else if (a.is_shared) {
    if (napi_create_reference(env, array, 1, &v->reference) != napi_ok) {
      return throw_napi(env) != NULL;
    }
  } else if (writes) {
    return throw_text(env, RL_INVALID_ARGUMENT,
                      "an output's memory must be that of a Tensor which Tensor.zeros() made, or "
                      "lie in a SharedArrayBuffer: other memory can be detached while a method "
                      "writes it") != NULL;
  } else {
    v->kept = copy_of(env, &a);
    if (v->kept == NULL) return false;
    v->data = v->kept->data;
  }
  return true;
}

void view_close(napi_env env, view* v) {
  memory_drop(v->kept);
  if (v->reference != NULL) napi_delete_reference(env, v->reference);
  *v = (view){0};
}

static rl_status close_of_kind(handle_kind kind, void* rl, rl_error* error) {
  switch (kind) {
    case MODULE:
      return rl_module_close(rl, error);
    case LLM:
      return rl_llm_close(rl, error);
    case SESSION:
      return rl_session_close(rl, error);
    case GRAMMAR:
      return rl_grammar_close(rl, error);
    case ADAPTER:
      return rl_adapter_close(rl, error);
  }
  return RL_INTERNAL;
}

handle* handle_new(handle_kind kind, void* rl, memory* program) {
  handle* h = calloc(1, sizeof *h);
  if (h == NULL) {
    close_of_kind(kind, rl, NULL);
    return NULL;
  }
  atomic_init(&h->owners, 1);
  atomic_init(&h->rl, rl);
  h->kind = kind;
  h->program = program != NULL ? memory_hold(program) : NULL;
  return h;
}

handle* handle_hold(handle* h) {
  atomic_fetch_add(&h->owners, 1);
  return h;
}

void handle_drop(handle* h) {
  if (h == NULL || atomic_fetch_sub(&h->owners, 1) != 1) return;
  handle_close(h, NULL);
  memory_drop(h->program);
  free(h);
}

/* The program's memory stays until the handle is dropped: others may have been made of it. */
rl_status handle_close(handle* h, rl_error* error) {
  const rl_status status = close_of_kind(h->kind, atomic_load(&h->rl), error);
  if (status == RL_OK) atomic_store(&h->rl, NULL);
  return status;
}

static void drop_handle(napi_env env, void* data, void* hint) {
  handle* h = data;
  int64_t total = 0;
  (void)hint;
  napi_adjust_external_memory(env, -h->told_memory, &total);
  h->told_memory = 0;
  handle_drop(h);
}

napi_value handle_value(napi_env env, handle* h) {
  napi_value value = NULL;
  if (napi_create_external(env, h, drop_handle, NULL, &value) == napi_ok) return value;
  handle_drop(h);
  return throw_napi(env);
}

handle* handle_of(napi_env env, napi_value value) {
  void* h = NULL;
  if (napi_get_value_external(env, value, &h) != napi_ok) throw_napi(env);
  return h;
}
