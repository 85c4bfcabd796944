/* Tasks: work on a thread of libuv's pool, whose end settles a promise. */
#include "support.h"

void* task_new(napi_env env, size_t bytes, handle* on) {
  task* t = calloc(1, bytes);
  if (t == NULL) return throw_no_memory(env);
  t->addon = addon_of(env);
  t->on = on != NULL ? handle_hold(on) : NULL;
  t->error = (rl_error)RL_ERROR_INIT;
  return t;
}

static void task_free(napi_env env, task* t) {
  if (t->release != NULL) t->release(env, t);
  handle_drop(t->on);
  free(t);
}

napi_value task_abandon(napi_env env, task* t) {
  task_free(env, t);
  return has_exception(env) ? NULL : throw_no_memory(env);
}

static void execute(napi_env env, void* data) {
  task* t = data;
  (void)env;
  if (atomic_load(&t->addon->stopping)) {
    t->status = RL_CANCELLED;
  } else {
    t->execute(t);
  }
}

/* The collector cannot see the memory of modules; it is told how it changed. */
static void tell_memory(napi_env env, const task* t) {
  handle* h = t->on;
  int64_t total = 0;
  if (h == NULL) return;
  const bool is_open = atomic_load(&h->rl) != NULL;
  if (is_open && t->memory_in_use == 0) return;
  const int64_t now = is_open ? (int64_t)t->memory_in_use : 0;
  napi_adjust_external_memory(env, now - h->told_memory, &total);
  h->told_memory = now;
}

static void settle(napi_env env, task* t) {
  napi_value value = NULL;
  bool is_pending = false;
  bool fails = t->status != RL_OK;
  if (fails) {
    value = failure_value(env, t->status, &t->error);
  } else if (t->make != NULL) {
    value = t->make(env, t);
  }
  napi_is_exception_pending(env, &is_pending);
  if (is_pending) {
    fails = true;
    napi_get_and_clear_last_exception(env, &value);
  }
  if (value == NULL) napi_get_undefined(env, &value);
  /* Neither succeeds in an environment that is being torn down, where nobody waits any more. */
  if (fails) {
    napi_reject_deferred(env, t->deferred, value);
  } else {
    napi_resolve_deferred(env, t->deferred, value);
  }
}

static void complete(napi_env env, napi_status status, void* data) {
  task* t = data;
  if (status == napi_cancelled) t->status = RL_CANCELLED;
  *(t->previous != NULL ? &t->previous->next : &t->addon->tasks) = t->next;
  if (t->next != NULL) t->next->previous = t->previous;
  tell_memory(env, t);
  settle(env, t);
  napi_delete_async_work(env, t->work);
  task_free(env, t);
}

napi_value task_start(napi_env env, task* t) {
  napi_value name = NULL, promise = NULL;
  if (napi_create_string_utf8(env, "rushlight", NAPI_AUTO_LENGTH, &name) != napi_ok ||
      napi_create_async_work(env, NULL, name, execute, complete, t, &t->work) != napi_ok) {
    throw_napi(env);
    return task_abandon(env, t);
  }
  if (napi_create_promise(env, &t->deferred, &promise) != napi_ok ||
      napi_queue_async_work(env, t->work) != napi_ok) {
    napi_delete_async_work(env, t->work);
    throw_napi(env);
    return task_abandon(env, t);
  }
  t->next = t->addon->tasks;
  if (t->next != NULL) t->next->previous = t;
  t->addon->tasks = t;
  return promise;
}
