/* What the plain C interfaces of backends (rl_backend_v1.h) and kernels (rl_kernel_v1.h) have in
 * common: codes of errors, texts, and the arguments of a call. Includes nothing of the runtime. The
 * headers of this folder name each other without one, since packages copy them.
 */
#ifndef RUSHLIGHT_RL_VALUE_V1_H_
#define RUSHLIGHT_RL_VALUE_V1_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes, with ExecuTorch's numbers; any other is taken for RL_INTERNAL. */
enum {
  RL_OK = 0x00,
  RL_INTERNAL = 0x01,
  RL_INVALID_STATE = 0x02,
  RL_NOT_SUPPORTED = 0x10,
  RL_NOT_IMPLEMENTED = 0x11,
  RL_INVALID_ARGUMENT = 0x12,
  RL_NOT_FOUND = 0x20,
  RL_MEMORY_ALLOCATION_FAILED = 0x21,
  RL_OUT_OF_RESOURCES = 0x25,
  RL_DELEGATE_INVALID_COMPATIBILITY = 0x30, /* a payload that is cut or of another version */
  RL_DELEGATE_MEMORY_ALLOCATION_FAILED = 0x31,
  RL_DELEGATE_INVALID_HANDLE = 0x32
};

typedef struct rl_text_v1 {
  const char* data;
  size_t size;
} rl_text_v1;

typedef struct rl_bytes_v1 {
  const void* data;
  size_t size;
} rl_bytes_v1;

/* What an option or an argument is. */
enum {
  RL_NONE = 0,
  RL_TENSOR = 1,
  RL_STRING = 2,
  RL_DOUBLE = 3,
  RL_INT = 4,
  RL_BOOL = 5,
  RL_LIST = 6 /* of any kind: a kernel asks for its items one by one, a backend cannot */
};

/* An argument. A tensor is dense: its elements lie without gaps in the order of `dim_order`, the
 * dimensions from the outermost to the innermost. */
typedef struct rl_value_v1 {
  uint32_t size; /* set by who asks: sizeof(rl_value_v1) */
  uint32_t kind;
  int64_t i;       /* RL_INT; RL_BOOL as 0 or 1; RL_DOUBLE cut, within 64 bits; RL_LIST: the kind of
                    * its items, RL_NONE where some of its tensors may be absent */
  double d;        /* RL_DOUBLE; RL_INT and RL_BOOL as a double */
  rl_text_v1 text; /* RL_STRING */
  /* RL_TENSOR: */
  void* data;               /* of an input: must not be written */
  const int32_t* sizes;     /* `rank` of them */
  const int32_t* strides;   /* likewise, in elements */
  const uint8_t* dim_order; /* likewise */
  uint32_t rank;
  int32_t dtype;   /* ExecuTorch's number: 6 float32, 4 int64, 11 bool, 15 bfloat16, ... */
  size_t nbytes;   /* of the elements that there are now */
  size_t capacity; /* bytes that resize() can make of them without taking memory */
  size_t n_items;  /* RL_LIST */
} rl_value_v1;

#ifdef __cplusplus
}
#endif

#endif /* RUSHLIGHT_RL_VALUE_V1_H_ */
