/* A kernel of your own as plain C: what crosses between the runtime and a library that was built
 * apart from it, by another compiler, with other flags, in another language. custom_kernel.h beside
 * this file makes one of a C++ function.
 *
 * A library exports one function,
 *
 *   const rl_kernel_v1* rl_get_kernel_v1(uint32_t index);
 *
 * that returns its kernels, index 0 first, and NULL behind the last. What the pointer leads to, and
 * all that it points to, must stay as it is until the library is unloaded.
 *
 * A library may export the same function as rl_get_loaded_kernel_v1, too: its kernels serve all
 * programs of a process that has loaded the library, by whatever means. Python's runtime looks for
 * it; others are given the library's path.
 *
 * Rules. Functions return 0 or one of the codes of rl_value_v1.h. They must not let an exception
 * out. Texts are pointer and length. Every struct has its size as its maker knew it, first or
 * behind the version: a reader uses only fields within that size, so that fields can be added at
 * the end.
 *
 * Threads. A kernel may be called by several threads at once, for different methods.
 */
#ifndef RUSHLIGHT_RL_KERNEL_V1_H_
#define RUSHLIGHT_RL_KERNEL_V1_H_

#include "rl_value_v1.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RL_KERNEL_V1_VERSION 1u
#define RL_KERNEL_V1_SYMBOL "rl_get_kernel_v1"
#define RL_KERNEL_V1_LOADED_SYMBOL "rl_get_loaded_kernel_v1"

/* It may be called inside a delegate, between operators of the cpu backend. Then the sizes of its
 * results are those that the operator's reference in Python gives for the sizes and numbers of its
 * arguments (they do not depend on elements), resize() accepts no others, and arguments may lie
 * anywhere. */
#define RL_KERNEL_IN_DELEGATES 1u

/* Items begin..end-1 of the work that is shared out. It must not fail. */
typedef void (*rl_kernel_body_v1)(void* data, int64_t begin, int64_t end);

/* What the runtime offers during a call. `context` comes with the call. An argument is named by its
 * index in the operator's schema, an item of a list by its index in the list. */
typedef struct rl_kernel_host_v1 {
  uint32_t version; /* RL_KERNEL_V1_VERSION */
  uint32_t size;    /* sizeof(rl_kernel_host_v1) as the runtime was compiled */
  /* Why the call is about to fail: the text reaches the user. */
  void (*explain)(void* context, rl_text_v1 text);
  /* RL_INVALID_ARGUMENT for an index beyond the arguments, and for an item that the list has not.
   */
  int32_t (*value)(void* context, size_t index, rl_value_v1* value);
  int32_t (*item)(void* context, size_t index, size_t item, rl_value_v1* value);
  /* Gives a tensor that the kernel writes the sizes of the result; ask for its value() anew
   * afterwards. `item` is 0 for a tensor that is no item of a list. */
  int32_t (*resize)(void* context, size_t index, size_t item, const int32_t* sizes, uint32_t rank);
  /* Memory until the call returns, at a multiple of 64; NULL if there is not so much. */
  void* (*scratch)(void* context, size_t bytes);
  size_t (*scratch_left)(void* context);
  /* How many threads parallel() may use. */
  size_t (*threads)(void* context);
  /* Calls body(data, begin, end) for runs of `grain` items that together are 0..items-1, maybe on
   * several threads at once. The body must use nothing else of this struct. */
  void (*parallel)(void* context, int64_t items, int64_t grain, rl_kernel_body_v1 body, void* data);
} rl_kernel_host_v1;

typedef struct rl_kernel_call_v1 {
  uint32_t size;
  uint32_t reserved;
  const rl_kernel_host_v1* host;
  void* context;
  size_t n_args; /* as many as the schema of the out-variant has; for "*" as the program's call */
} rl_kernel_call_v1;

typedef struct rl_kernel_v1 {
  uint32_t version; /* RL_KERNEL_V1_VERSION */
  uint32_t size;    /* sizeof(rl_kernel_v1) as the kernel was compiled */
  /* The name of the out-variant, "acme::snake.out": at most 255 bytes and a closing NUL. */
  const char* name;
  /* A letter for each argument of the out-variant, and "=" behind them; "?" before a letter if it
   * may be None:
   *   t Tensor   w Tensor that is written   T Tensor[]  W Tensor[] that is written  O Tensor?[]
   *   i int      d float    b bool    s Scalar    S str    I int[]    D float[]    B bool[]
   * acme::snake.out(Tensor x, float a, *, Tensor(a!) out) has "tdw=". A program whose schema of
   * the operator differs is refused.
   * Or "*": the kernel takes whatever arguments the call in the program has, what it returns last,
   * and checks their number and kinds by itself. */
  const char* signature;
  /* NULL, or the dtypes and dim orders that it is for: docs/custom-operators.md. */
  const char* key;
  void* self; /* what run is given */
  /* Reads its arguments, resizes and writes the results, changes nothing else. */
  int32_t (*run)(void* self, const rl_kernel_call_v1* call);
  uint64_t flags; /* RL_KERNEL_IN_DELEGATES, or 0 */
} rl_kernel_v1;

typedef const rl_kernel_v1* (*rl_get_kernel_v1_fn)(uint32_t index);

#ifdef __cplusplus
}
#endif

#endif /* RUSHLIGHT_RL_KERNEL_V1_H_ */
