/* What the addon's files share: values of JavaScript as C, memory and handles that are counted, and
 * tasks, which run on a thread of libuv's pool and settle a promise.
 *
 * The addon trusts the files in lib/, its only callers, to pass values of the right types; whatever
 * a program can pass is checked there or by librushlight. There is no global state, so that each
 * worker thread has an addon of its own.
 */
#ifndef RUSHLIGHT_NODE_SUPPORT_H_
#define RUSHLIGHT_NODE_SUPPORT_H_

#define NAPI_VERSION 8
#include <node_api.h>
#include <rushlight.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory -------------------------------------------------------------------------------- */

/* Bytes that live until their last owner drops them. An ArrayBuffer over them is one owner, a run
 * that reads or writes them another: detaching the ArrayBuffer takes nothing from the run. */
typedef struct memory {
  atomic_size_t owners;
  size_t bytes;
  char* data; /* aligned for all dtypes */
} memory;

/* With one owner, and not cleared; NULL if there is not so much memory. Threads: any. */
memory* memory_new(size_t bytes);
memory* memory_hold(memory* m);
void memory_drop(memory* m); /* NULL is nothing to drop */

/* An ArrayBuffer that takes over one owner; NULL with an exception. */
napi_value memory_buffer(napi_env env, memory* m);
/* What a Uint8Array has, as memory with an owner for the caller: a copy, unless the array lies in
 * memory that memory_buffer() gave, from its start to its end. NULL with an exception. */
memory* memory_of_bytes(napi_env env, napi_value bytes);

/* The elements of a typed array for the time of a task: counted memory, or kept by a reference, or
 * copied, where the array could be detached or shrink. */
typedef struct view {
  memory* kept;
  napi_ref reference;
  char* data;
  size_t bytes;
} view;

/* `writes`: memory that would have to be copied is refused. False with an exception. */
bool view_open(napi_env env, napi_value array, bool writes, view* v);
void view_close(napi_env env, view* v);

/* ---- handles ------------------------------------------------------------------------------- */

typedef enum { MODULE, LLM, SESSION, GRAMMAR, ADAPTER } handle_kind;

/* A handle of librushlight, which the last owner closes. */
typedef struct handle {
  atomic_size_t owners;
  handle_kind kind;
  _Atomic(void*) rl;   /* NULL: closed */
  memory* program;     /* that it was opened from, or NULL */
  int64_t told_memory; /* bytes that the garbage collector was told of; on the main thread */
} handle;

/* With one owner; keeps `program`, which may be NULL. If there is no memory left, NULL, and `rl` is
 * closed. Threads: any. */
handle* handle_new(handle_kind kind, void* rl, memory* program);
handle* handle_hold(handle* h);
void handle_drop(handle* h);
rl_status handle_close(handle* h, rl_error* error);

/* A value for JavaScript that takes over one owner; NULL with an exception. */
napi_value handle_value(napi_env env, handle* h);
handle* handle_of(napi_env env, napi_value value);

static inline rl_module* module_of(handle* h) { return atomic_load(&h->rl); }
static inline rl_llm* llm_of(handle* h) { return atomic_load(&h->rl); }
static inline rl_session* session_of(handle* h) { return atomic_load(&h->rl); }

/* ---- tasks --------------------------------------------------------------------------------- */

typedef struct task task;
struct task {
  napi_async_work work;
  napi_deferred deferred;
  struct addon* addon;
  task* next; /* in the list of the addon */
  task* previous;
  handle* on;             /* what it uses; NULL: nothing */
  uint64_t memory_in_use; /* of the module afterwards; 0: not known */
  rl_status status;
  rl_error error;
  void (*execute)(task*);              /* on another thread; sets `status` and `error` */
  napi_value (*make)(napi_env, task*); /* the result; NULL: undefined, or an exception */
  void (*release)(napi_env, task*);    /* frees what it has; may be NULL */
};

/* What one copy of the addon has; used on its main thread, but for `stopping`. */
typedef struct addon {
  task* tasks;
  struct generation* generations;
  double last_number;   /* of a generation */
  atomic_bool stopping; /* the process or the worker ends: begin nothing more */
} addon;

addon* addon_of(napi_env env);

/* A task of `bytes` bytes, cleared, that holds `on`; NULL with an exception. */
void* task_new(napi_env env, size_t bytes, handle* on);
/* Starts a task, which it takes over; its promise, or NULL with an exception. */
napi_value task_start(napi_env env, task* t);
/* Frees a task that was not started, after an exception; NULL. */
napi_value task_abandon(napi_env env, task* t);

/* ---- values -------------------------------------------------------------------------------- */

/* What lib/errors.js makes a RushlightError of. */
napi_value failure_value(napi_env env, rl_status status, const rl_error* error);
/* Throws that; NULL. */
void* throw_status(napi_env env, rl_status status, const rl_error* error);
/* Throws the same with a text; NULL. */
void* throw_text(napi_env env, rl_status status, const char* text);
void* throw_no_memory(napi_env env);
/* Throws what a function of Node-API failed with, unless an exception is there already; NULL. */
void* throw_napi(napi_env env);

bool read_arguments(napi_env env, napi_callback_info info, size_t count, napi_value* arguments);
/* UTF-8 with a NUL behind it, to be freed; `size` may be NULL. NULL with an exception. */
char* read_text(napi_env env, napi_value value, size_t* size);
/* An array of strings, to be freed by free_texts(); false with an exception. */
typedef struct text_list {
  char** items;
  rl_text_v1* views;
  uint32_t count;
} text_list;
bool read_texts(napi_env env, napi_value array, text_list* texts);
void free_texts(text_list* texts);

/* Fields of an object; absent ones are NULL or 0. */
napi_value get_field(napi_env env, napi_value object, const char* name);
uint64_t get_whole(napi_env env, napi_value object, const char* name); /* a number or a bigint */
double get_real(napi_env env, napi_value object, const char* name);
/* A string, to be freed; NULL if it is absent, or with an exception. */
char* get_text(napi_env env, napi_value object, const char* name);
/* An array of strings, which may be absent; false with an exception. */
bool get_texts(napi_env env, napi_value object, const char* name, text_list* texts);

/* These set a field, and do nothing once an exception is there. */
void set_value(napi_env env, napi_value object, const char* name, napi_value value);
void set_number(napi_env env, napi_value object, const char* name, double number);
void set_whole(napi_env env, napi_value object, const char* name, uint64_t number); /* a bigint */
void set_text(napi_env env, napi_value object, const char* name, rl_text_v1 text);
void set_numbers(napi_env env, napi_value object, const char* name, const int32_t* numbers,
                 size_t count);
napi_value new_object(napi_env env);
napi_value new_array(napi_env env);
bool has_exception(napi_env env);

/* An Int32Array or a Float32Array with a copy of the items; NULL with an exception. */
napi_value new_items(napi_env env, napi_typedarray_type type, const void* items, size_t count);

/* ---- the functions of the other files ------------------------------------------------------ */

typedef struct function {
  const char* name;
  napi_callback call;
} function;

extern const function module_functions[];
extern const function run_functions[];
extern const function command_functions[];
extern const function llm_functions[];
extern const function generate_functions[];

/* Ends the generations of an addon, and waits until they have ended. */
void stop_generations(addon* a);

#endif /* RUSHLIGHT_NODE_SUPPORT_H_ */
