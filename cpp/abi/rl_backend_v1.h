/* A backend as plain C: what crosses between the runtime and a library that was built apart from
 * it, by another compiler, with other flags, in another language. Versioned, and without anything
 * of C++, so that no side needs to know how the other was built.
 *
 * A library exports one function,
 *
 *   const rl_backend_v1* rl_get_backend_v1(uint32_t index);
 *
 * that returns its backends, index 0 first, and NULL behind the last. A Python package may instead
 * hand over a PyCapsule named "rl_backend_v1" that holds one such pointer. What the pointer leads
 * to, and all that it points to, must stay as it is until the process ends.
 *
 * Rules. Functions return 0 or one of the codes of rl_value_v1.h. They must not let an exception
 * out. Texts are pointer and length; they need no closing NUL unless it says so. Texts, bytes and
 * specs stay as they are; every other struct has its size as its maker knew it, first or behind the
 * version: a reader uses only fields within that size, so that fields can be added at the end.
 *
 * Threads. One handle is used by one thread at a time, from init to destroy; several handles may be
 * used by several threads at once. What `self` leads to is shared by them all.
 */
#ifndef RUSHLIGHT_RL_BACKEND_V1_H_
#define RUSHLIGHT_RL_BACKEND_V1_H_

#include "rl_value_v1.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RL_BACKEND_V1_VERSION 1u
#define RL_BACKEND_V1_CAPSULE "rl_backend_v1"
#define RL_BACKEND_V1_SYMBOL "rl_get_backend_v1"

typedef struct rl_spec_v1 {
  rl_text_v1 key;
  rl_bytes_v1 value;
} rl_spec_v1;

typedef struct rl_option_v1 {
  uint32_t size; /* set by who asks: sizeof(rl_option_v1) */
  uint32_t kind; /* RL_BOOL, RL_INT or RL_STRING */
  int64_t i;     /* RL_INT; RL_BOOL as 0 or 1 */
  rl_text_v1 text;
} rl_option_v1;

/* What the runtime offers. `context` comes with each call (rl_init_v1, rl_call_v1) and is valid
 * until that call returns. */
typedef struct rl_host_v1 {
  uint32_t version; /* RL_BACKEND_V1_VERSION */
  uint32_t size;    /* sizeof(rl_host_v1) as the runtime was compiled */
  /* Why the call is about to fail: the text reaches the user. */
  void (*explain)(void* context, rl_text_v1 text);
  /* Where inside the delegate: an id of the backend's own, by which the debug map knows the lines
   * of Python. */
  void (*fail_at_number)(void* context, int64_t id);
  void (*fail_at_text)(void* context, rl_text_v1 id);
  /* Memory: in init for as long as the method lives, in execute until it returns. NULL if there is
   * not so much. The alignment is a power of two. */
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  /* A stretch of time inside the delegate, for whoever traces; `id` empty: `number` is the id. */
  void (*event)(void* context, rl_text_v1 id, int64_t number, uint64_t start_ns, uint64_t stop_ns);
  uint64_t (*now_ns)(void); /* the clock of event() */
  /* In init alone. RL_NOT_FOUND for a key that is not there. The bytes stay where they are as long
   * as the handle lives, and must not be written. */
  int32_t (*named_data)(void* context, rl_text_v1 key, rl_bytes_v1* data);
  int32_t (*option)(void* context, rl_text_v1 key, rl_option_v1* option);
  /* In init alone: the payload will not be read again, and its memory may be given back. */
  void (*release_payload)(void* context);
  /* In execute alone. RL_INVALID_ARGUMENT for an index beyond the arguments. */
  int32_t (*value)(void* context, size_t index, rl_value_v1* value);
  /* Gives output `index` (among all arguments) the sizes of the result; ask for its value() anew
   * afterwards. */
  int32_t (*resize)(void* context, size_t index, const int32_t* sizes, uint32_t rank);
  /* As event(), with bytes of the backend's own, which readers of traces hand to its parser. */
  void (*event_with)(void* context, rl_text_v1 id, int64_t number, uint64_t start_ns,
                     uint64_t stop_ns, rl_bytes_v1 metadata);
  /* In execute alone: not 0 if the value of a place inside the delegate is recorded; the id is as
   * for event(). */
  int32_t (*wants_value)(void* context, rl_text_v1 id, int64_t number);
  /* In execute alone: the value of a place, a tensor whose elements lie without gaps in row-major
   * order. It is copied if it is wanted. RL_INVALID_ARGUMENT for a dtype that traces cannot hold,
   * for sizes that no tensor has, and for data of another size. */
  int32_t (*tell_value)(void* context, rl_text_v1 id, int64_t number, int32_t dtype,
                        const int32_t* sizes, uint32_t rank, rl_bytes_v1 data);
} rl_host_v1;

typedef struct rl_init_v1 {
  uint32_t size;
  uint32_t n_specs;
  const rl_host_v1* host;
  void* context;
  rl_text_v1 method;
  rl_bytes_v1 payload; /* stays where it is as long as the handle lives; must not be written */
  const rl_spec_v1* specs;
} rl_init_v1;

typedef struct rl_call_v1 {
  uint32_t size;
  uint32_t is_traced; /* 0: event() and tell_value() do nothing */
  const rl_host_v1* host;
  void* context;
  size_t n_args;
  size_t n_inputs; /* the first arguments; the others are outputs */
} rl_call_v1;

typedef struct rl_backend_v1 {
  uint32_t version; /* RL_BACKEND_V1_VERSION */
  uint32_t size;    /* sizeof(rl_backend_v1) as the backend was compiled */
  const char* id;   /* 1 to 63 bytes and a closing NUL */
  void* self;       /* what the functions are given */
  /* Not 0 if the backend can work on this machine; NULL: it always can. */
  int32_t (*is_available)(void* self);
  /* Makes of a payload what execute needs: `*handle`, which may be NULL. What fails must leave
   * nothing behind: only a handle of an init that returned RL_OK is destroyed, once. */
  int32_t (*init)(void* self, const rl_init_v1* init, void** handle);
  /* Reads the inputs, resizes and writes the outputs, changes nothing else. */
  int32_t (*execute)(void* self, void* handle, const rl_call_v1* call);
  /* NULL: nothing is to be done. */
  void (*destroy)(void* self, void* handle);
} rl_backend_v1;

typedef const rl_backend_v1* (*rl_get_backend_v1_fn)(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* RUSHLIGHT_RL_BACKEND_V1_H_ */
