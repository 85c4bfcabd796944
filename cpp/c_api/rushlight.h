/* Rushlight's interface in plain C11: everything that other languages bind.
 *
 *   rl_module* module = NULL;
 *   rl_error error = RL_ERROR_INIT;
 *   if (rl_module_open("model.pte", NULL, &module, &error) != RL_OK) return fail(error.text);
 *   int32_t sizes[] = {2, 3};
 *   rl_value_v1 x = rl_tensor(x_data, RL_FLOAT32, sizes, 2);
 *   rl_value_v1 y = RL_VALUE_INIT;
 *   if (rl_module_run(module, "forward", &x, 1, &y, 1, &error) != RL_OK) return fail(error.text);
 *   use(y.data, y.sizes, y.rank);
 *   rl_module_close(module, &error);
 *
 * Errors. Functions return RL_OK (0) or a code, and write why into the caller's rl_error, which may
 * be NULL. What a function was to fill is then unchanged, unless it says otherwise. After a success
 * `error->text` is empty.
 *
 * Structs begin with their size, which the caller sets (the macros RL_..._INIT do): a library reads
 * and writes only fields within it, so that fields can be added at the end. All fields that are not
 * set are 0, which means the default. In an array all structs have the size of the first one.
 *
 * Handles (rl_module*, rl_llm*, ...) are numbers, not addresses: nothing but the functions here can
 * use them. A handle that was closed, or is none, is refused with RL_INVALID_STATE; so is one that
 * another thread uses at the moment, where the function says "Threads: one at a time". "Threads:
 * any" may be called by any number of threads at once. Handles are not for use in the child of a
 * fork.
 *
 * Memory. What a function lends ("until ...") belongs to the handle. Texts that are passed as
 * `const char*` end with a NUL and are copied, unless the function says otherwise; an rl_text_v1
 * needs no NUL. All memory comes from the allocator of rl_set_allocator(), if there is one.
 *
 * A callback must not let an exception out, and must not use the handle of the call that it is made
 * in, except where it is said.
 */
#ifndef RUSHLIGHT_RUSHLIGHT_H_
#define RUSHLIGHT_RUSHLIGHT_H_

#include <stddef.h>
#include <stdint.h>

/* Codes, kinds of values, texts and values; backends and kernels as C tables. They lie beside this
 * file. */
#include <rl_backend_v1.h>
#include <rl_kernel_v1.h>

#if defined(RL_BUILDING_SHARED) && (defined(__GNUC__) || defined(__clang__))
#define RL_API __attribute__((visibility("default")))
#else
#define RL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ------------------------------------------------------------------------------ */

/* Of this header. Another minor number adds at the end; another major number may change anything,
 * and the shared library has it in its name. */
#define RL_ABI_MAJOR 1u
#define RL_ABI_MINOR 0u
#define RL_ABI_VERSION (RL_ABI_MAJOR * 1000u + RL_ABI_MINOR)

typedef int32_t rl_status;

/* Codes beyond those of rl_value_v1.h; all but the last with ExecuTorch's numbers. */
enum {
  RL_END_OF_METHOD = 0x03,
  RL_ALREADY_LOADED = 0x04,
  RL_INVALID_TYPE = 0x13,
  RL_OPERATOR_MISSING = 0x14,
  RL_REGISTRATION_EXCEEDING_MAX_KERNELS = 0x15,
  RL_REGISTRATION_ALREADY_REGISTERED = 0x16,
  RL_ACCESS_FAILED = 0x22,
  RL_INVALID_PROGRAM = 0x23,
  RL_INVALID_EXTERNAL_DATA = 0x24,
  RL_CANCELLED = 0x80
};

enum { RL_MAX_RANK = 16, RL_ERROR_TEXT = 1024 };

/* Dtypes that values can have, with ExecuTorch's numbers. */
enum {
  RL_UINT8 = 0,
  RL_INT8 = 1,
  RL_INT16 = 2,
  RL_INT32 = 3,
  RL_INT64 = 4,
  RL_FLOAT16 = 5,
  RL_FLOAT32 = 6,
  RL_FLOAT64 = 7,
  RL_COMPLEX64 = 9,
  RL_COMPLEX128 = 10,
  RL_BOOLEAN = 11, /* a byte, 0 or 1; RL_BOOL is a kind of value */
  RL_BFLOAT16 = 15,
  RL_UINT16 = 27,
  RL_UINT32 = 28,
  RL_UINT64 = 29
};

/* No index. */
#define RL_NO_INDEX UINT32_MAX

typedef struct rl_error {
  uint32_t size;
  rl_status code;
  uint32_t instruction; /* of the method's chain, that failed; RL_NO_INDEX: none */
  uint32_t delegate;    /* among the method's, that failed; RL_NO_INDEX: none */
  char text[RL_ERROR_TEXT];
} rl_error;

#define RL_ERROR_INIT {(uint32_t)sizeof(rl_error), 0, RL_NO_INDEX, RL_NO_INDEX, {0}}
#define RL_VALUE_INIT {(uint32_t)sizeof(rl_value_v1), 0, 0, 0, {0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* A tensor in row-major order, as an input. It refers to `data` and `sizes`. */
static inline rl_value_v1 rl_tensor(const void* data, int32_t dtype, const int32_t* sizes,
                                    uint32_t rank) {
  rl_value_v1 value = RL_VALUE_INIT;
  value.kind = RL_TENSOR;
  value.data = (void*)data;
  value.sizes = sizes;
  value.rank = rank;
  value.dtype = dtype;
  return value;
}

/* The RL_ABI_VERSION that the library was built with. Threads: any. */
RL_API uint32_t rl_abi_version(void);

/* RL_NOT_SUPPORTED unless a caller built with `version` (give RL_ABI_VERSION) can use this library:
 * of the same major number, and of no later minor one. Threads: any. */
RL_API rl_status rl_check_abi(uint32_t version, rl_error* error);

/* The release of Rushlight, such as "0.1.0". Lent for ever. Threads: any. */
RL_API const char* rl_version(void);

/* The name of a code, such as "InvalidArgument"; "?" for another number. Lent for ever. Threads:
 * any. */
RL_API const char* rl_status_name(rl_status code);

/* ---- the process --------------------------------------------------------------------------- */

typedef struct rl_allocator {
  uint32_t size;
  uint32_t reserved;
  void* userdata;
  /* NULL if there is not so much memory. `alignment` is a power of two. */
  void* (*allocate)(void* userdata, size_t bytes, size_t alignment);
  void (*free)(void* userdata, void* memory);
} rl_allocator;

/* Replaces the heap for everything in this copy of the library. To be called before all other
 * functions but those of versions, and once: RL_INVALID_STATE otherwise. The functions are called
 * by any thread. Arenas, which the system otherwise gives page by page, are then allocated whole;
 * the mapping of files and the stacks of threads stay the system's. In the static library, C++
 * objects come from the program's own operator new if it replaces that. Threads: one, before
 * others. */
RL_API rl_status rl_set_allocator(const rl_allocator* allocator, rl_error* error);

enum { RL_LOG_DEBUG = 0, RL_LOG_INFO = 1, RL_LOG_WARNING = 2, RL_LOG_ERROR = 3 };
/* One line, without its end. */
typedef void (*rl_log_fn)(void* userdata, int32_t level, rl_text_v1 line);

/* Where lines for the user go, in place of stderr; NULL: nowhere. `log` is called by any
 * thread. Threads: one, while no other function runs. */
RL_API rl_status rl_set_log(rl_log_fn log, void* userdata, rl_error* error);

/* ---- modules: loading ---------------------------------------------------------------------- */

typedef struct rl_module rl_module;

/* A file that the caller reads. */
typedef struct rl_source {
  uint32_t size;
  uint32_t reserved;
  uint64_t bytes; /* of the file */
  void* userdata;
  /* Copies `bytes` bytes from `offset` on. Not 0: it failed. */
  int32_t (*read)(void* userdata, uint64_t offset, void* to, size_t bytes);
} rl_source;

typedef struct rl_module_options {
  uint32_t size;
  uint32_t threads;          /* for kernels, the caller's among them; 0: one for each core */
  uint64_t memory_limit;     /* bytes for methods; 0: none */
  uint64_t scratch_bytes;    /* for each method; 0: 1 MiB */
  uint64_t max_instructions; /* of a run; 0: 10,000,000 */
  const char* data_path;     /* the .ptd that belongs to the program */
  /* Backends beside the library's own, as C tables and as shared libraries with them. The tables
   * must live as long as the process. */
  const rl_backend_v1* const* backends;
  const char* const* backend_libraries;
  uint32_t n_backends;
  uint32_t n_backend_libraries;
  /* The same with kernels, for operators of your own. */
  const rl_kernel_v1* const* kernels;
  const char* const* kernel_libraries;
  uint32_t n_kernels;
  uint32_t n_kernel_libraries;
  uint32_t reads_file;       /* 1: the file is read, not mapped, and may be written meanwhile */
  uint32_t guards_file;      /* 1: each use asks whether the file has changed: RL_ACCESS_FAILED */
  uint32_t reports_failures; /* 1: see rl_module_failure_report() */
  uint32_t reserved;
} rl_module_options;

#define RL_MODULE_OPTIONS_INIT \
  {(uint32_t)sizeof(rl_module_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Opens a program (.pte), or the program in a bundled one (.bpte), and verifies it. `options` may
 * be NULL. *module is to be closed. Errors: RL_ACCESS_FAILED: the file cannot be read;
 * RL_INVALID_PROGRAM: it is none, or damaged; RL_NOT_FOUND, RL_OUT_OF_RESOURCES,
 * RL_DELEGATE_INVALID_COMPATIBILITY, RL_INVALID_ARGUMENT and RL_REGISTRATION_ALREADY_REGISTERED: a
 * backend or a kernel that was given cannot be used. Threads: any. */
RL_API rl_status rl_module_open(const char* path, const rl_module_options* options,
                                rl_module** module, rl_error* error);

/* The same for a program in memory, which must stay as it is until the module and its clones are
 * closed. Threads: any. */
RL_API rl_status rl_module_open_memory(const void* data, size_t bytes,
                                       const rl_module_options* options, rl_module** module,
                                       rl_error* error);

/* The same for a program that `source` reads, into memory of the module, before this returns.
 * RL_ACCESS_FAILED if a read fails. Threads: any. */
RL_API rl_status rl_module_open_source(const rl_source* source, const rl_module_options* options,
                                       rl_module** module, rl_error* error);

/* Closes a module and frees its memory, and with it all that it has lent. Clones stay. NULL is
 * nothing to close. RL_INVALID_STATE while a thread uses it. Threads: one at a time. */
RL_API rl_status rl_module_close(rl_module* module, rl_error* error);

/* A module on the same program, with memory and state of its own, for another thread. Threads: one
 * at a time. */
RL_API rl_status rl_module_clone(rl_module* module, rl_module** copy, rl_error* error);

/* A clone with the same methods loaded, and with the current state and seed. Threads: one at a
 * time. */
RL_API rl_status rl_module_fork(rl_module* module, rl_module** copy, rl_error* error);

/* ---- modules: what they are ---------------------------------------------------------------- */

typedef struct rl_module_info {
  uint32_t size;
  uint32_t n_methods;
  uint32_t threads; /* that kernels may use */
  uint32_t reserved;
  uint64_t memory_in_use;   /* bytes of the methods that are loaded */
  uint64_t memory_resident; /* of them, in physical memory */
} rl_module_info;

typedef struct rl_method_info {
  uint32_t size;
  uint32_t is_loaded;
  uint32_t n_inputs;
  uint32_t n_outputs;
  rl_text_v1 name; /* lent until the module is closed */
  /* The memory that it takes, or would take. */
  uint64_t arenas;
  uint64_t shared_arenas; /* allocated once for all methods */
  uint64_t structures;    /* without what backends allocate */
  uint64_t outputs;       /* that the program does not plan */
  uint64_t scratch;
  uint64_t instructions;
} rl_method_info;

/* An input or an output. */
typedef struct rl_value_info {
  uint32_t size;
  uint32_t kind;   /* RL_TENSOR, RL_INT, ... */
  rl_text_v1 name; /* of an input, such as "x" or "batch['ids']"; lent until the module is closed;
                      empty if the program has none */
  int32_t dtype;   /* of a tensor */
  uint32_t rank;
  int32_t min_sizes[RL_MAX_RANK];
  int32_t max_sizes[RL_MAX_RANK]; /* INT32_MAX: no bound */
  /* Sizes of one number, from 1 on, are equal in a call; 0: it is not tied to others. */
  uint32_t symbols[RL_MAX_RANK];
  uint8_t dim_order[RL_MAX_RANK];
  uint64_t nbytes; /* of a tensor of the greatest sizes; UINT64_MAX: no bound */
  /* Of a scalar: the value at export; whether it must have that value; else its range. */
  int64_t i;
  double d;
  rl_text_v1 text;
  int64_t min_int;
  int64_t max_int;
  uint32_t is_fixed;
  uint32_t is_planned; /* of a tensor: it lies in an arena, not in memory of the caller */
} rl_value_info;

/* Each `info` has its size set. Names of methods are lent until the module is closed. Errors:
 * RL_INVALID_ARGUMENT for a method or an index that there is not. Threads: one at a time. */
RL_API rl_status rl_module_describe(rl_module* module, rl_module_info* info, rl_error* error);
RL_API rl_status rl_module_method_name(rl_module* module, uint32_t index, rl_text_v1* name,
                                       rl_error* error);
RL_API rl_status rl_module_describe_method(rl_module* module, const char* method,
                                           rl_method_info* info, rl_error* error);
RL_API rl_status rl_module_describe_input(rl_module* module, const char* method, uint32_t index,
                                          rl_value_info* info, rl_error* error);
RL_API rl_status rl_module_describe_output(rl_module* module, const char* method, uint32_t index,
                                           rl_value_info* info, rl_error* error);

/* What the inputs of a method have to do with each other, as text, such as "size 0 of input 'y' ==
 * size 0 of input 'x'"; a run that does not keep to it is refused. Lent until the module is closed.
 * Errors: RL_INVALID_ARGUMENT for a method or an index that there is not. Threads: one at a time.
 */
RL_API rl_status rl_module_relation_count(rl_module* module, const char* method, uint32_t* count,
                                          rl_error* error);
RL_API rl_status rl_module_relation(rl_module* module, const char* method, uint32_t index,
                                    rl_text_v1* text, rl_error* error);

/* ---- modules: running ---------------------------------------------------------------------- */

/* Loads a method, which otherwise its first run does: takes its memory, and prepares its kernels
 * and delegates. Errors: RL_OPERATOR_MISSING and RL_NOT_FOUND name the kernels and the backends
 * that are missing; RL_OUT_OF_RESOURCES: the memory limit. Threads: one at a time. */
RL_API rl_status rl_module_load(rl_module* module, const char* method, rl_error* error);

/* Frees a method, its memory and its own state. Threads: one at a time. */
RL_API rl_status rl_module_unload(rl_module* module, const char* method, rl_error* error);

/* Runs a method, after loading it if necessary. Nothing is allocated when a method runs again, but
 * for an input that must be copied first.
 *
 * Inputs are checked before anything runs. A value has `kind` and what belongs to it: `i` (RL_INT
 * and RL_BOOL), `d` (RL_DOUBLE), `text` (RL_STRING); RL_NONE has nothing. A tensor has `data`,
 * `dtype`, `sizes` and `rank`; `strides` in elements, or NULL: then they follow from `dim_order`,
 * and if that is NULL, too, from row-major order; `nbytes`, the bytes that may be read, or 0: not
 * checked (with strides: from the element at index 0, which needs room after it alone). Its memory
 * must stay as it is until the call returns.
 *
 * `outputs` are filled, the first `n_outputs` of the method's. Their memory is lent until the
 * method runs again or is unloaded, or the module is closed; that of rl_module_set_output() is the
 * caller's.
 *
 * Errors: RL_INVALID_ARGUMENT and RL_NOT_SUPPORTED name the input; RL_CANCELLED:
 * rl_module_cancel(). Threads: one at a time. */
RL_API rl_status rl_module_run(rl_module* module, const char* method, const rl_value_v1* inputs,
                               uint32_t n_inputs, rl_value_v1* outputs, uint32_t n_outputs,
                               rl_error* error);

/* Where an output is to be written from now on. `data` must be aligned for its dtype, and live
 * until other memory is set or the method is unloaded; a result that is greater than `bytes`
 * fails the run. NULL: the module's memory again. An output that the program plans in an arena is
 * copied when the run has ended. Threads: one at a time. */
RL_API rl_status rl_module_set_output(rl_module* module, const char* method, uint32_t index,
                                      void* data, size_t bytes, rl_error* error);

/* Ends the run that another thread is in with RL_CANCELLED, before its next operator on tensors, in
 * the cpu and XNNPACK delegates too, or its next jump. Does nothing if there is none. State and
 * outputs are then those of a run that failed. Threads: any. */
RL_API rl_status rl_module_cancel(rl_module* module, rl_error* error);

/* Random operators draw as after torch.manual_seed(seed). Threads: one at a time. */
RL_API rl_status rl_module_seed(rl_module* module, uint64_t seed, rl_error* error);

/* ---- modules: state ------------------------------------------------------------------------ */

/* A buffer that a method writes, which keeps its content from one run to the next. */
typedef struct rl_state_info {
  uint32_t size;
  int32_t dtype;
  rl_text_v1 name;   /* empty if the program has none */
  rl_text_v1 method; /* the first loaded method that has it */
  uint32_t rank;
  int32_t sizes[RL_MAX_RANK];
  uint8_t dim_order[RL_MAX_RANK];
  uint32_t reserved;
  void* data; /* may be read and written between runs */
  size_t nbytes;
} rl_state_info;

/* State of the methods that are loaded, until one is loaded or unloaded. RL_INVALID_ARGUMENT for an
 * index that there is not. Threads: one at a time. */
RL_API rl_status rl_module_state_count(rl_module* module, uint32_t* count, rl_error* error);
RL_API rl_status rl_module_state(rl_module* module, uint32_t index, rl_state_info* info,
                                 rl_error* error);

/* All state and the seed's place, as bytes for rl_module_restore() in this module, or in another
 * one of the same program with the same methods loaded. *bytes becomes their number; with `to` NULL
 * that is all. RL_INVALID_ARGUMENT for too little room, or bytes that are no snapshot of this
 * state. Threads: one at a time. */
RL_API rl_status rl_module_snapshot(rl_module* module, void* to, size_t capacity, size_t* bytes,
                                    rl_error* error);
RL_API rl_status rl_module_restore(rl_module* module, const void* from, size_t bytes,
                                   rl_error* error);

/* The state has its initial content again. Threads: one at a time. */
RL_API rl_status rl_module_reset_state(rl_module* module, rl_error* error);

/* ---- modules: traces and failures ---------------------------------------------------------- */

enum { RL_TRACE_TIMES = 0, RL_TRACE_OUTPUTS = 1, RL_TRACE_ALL_VALUES = 2 };

typedef struct rl_trace_options {
  uint32_t size;
  uint32_t values;      /* RL_TRACE_... */
  uint64_t bytes;       /* room for events, some 80 for each; 0: 1 MiB */
  uint64_t value_bytes; /* room for values; 0: 16 MiB if there are any */
} rl_trace_options;

/* Not 0: stop. */
typedef int32_t (*rl_write_fn)(void* userdata, const void* data, size_t bytes);

/* Records loads and runs from now on, and forgets what was recorded. `options` may be NULL. What
 * finds no room is counted in the trace. Threads: one at a time. */
RL_API rl_status rl_module_trace_start(rl_module* module, const rl_trace_options* options,
                                       rl_error* error);
/* Records no more, and keeps what was recorded until the next start. Threads: one at a time. */
RL_API rl_status rl_module_trace_stop(rl_module* module, rl_error* error);
/* Gives the trace, in ExecuTorch's format (ETDump), piece by piece to `write`; and the values that
 * it refers to (the debug buffer). RL_INVALID_STATE if nothing was traced, RL_ACCESS_FAILED if
 * `write` stops. Threads: one at a time. */
RL_API rl_status rl_module_trace_write(rl_module* module, rl_write_fn write, void* userdata,
                                       rl_error* error);
RL_API rl_status rl_module_trace_values(rl_module* module, rl_write_fn write, void* userdata,
                                        rl_error* error);
/* Writes the trace to a file, and the values to one with ".values" at its end, if values are
 * traced. RL_ACCESS_FAILED if that cannot be done. Threads: one at a time. */
RL_API rl_status rl_module_trace_save(rl_module* module, const char* path, rl_error* error);

/* The report of the last load, input or run that failed, for `rushlight explain`; of size 0 if
 * there is none. Lent until the module's next call. RL_INVALID_STATE unless rl_module_options says
 * `reports_failures`. Threads: one at a time. */
RL_API rl_status rl_module_failure_report(rl_module* module, rl_bytes_v1* report, rl_error* error);

/* ---- language models ----------------------------------------------------------------------- */

typedef struct rl_llm rl_llm;
typedef struct rl_session rl_session;
typedef struct rl_grammar rl_grammar;
typedef struct rl_adapter rl_adapter;

enum { RL_CACHE_AUTOMATIC = 0, RL_CACHE_FLOAT32 = 1, RL_CACHE_FLOAT16 = 2, RL_CACHE_INT8 = 3 };

typedef struct rl_llm_options {
  uint32_t size;
  uint32_t threads;      /* as in rl_module_options, and so are the next four */
  uint64_t memory_limit; /* without the cache */
  const char* data_path;
  uint32_t reads_file;
  uint32_t guards_file;
  uint32_t cache;            /* RL_CACHE_...: the type of keys and values */
  uint32_t max_texts;        /* that are computed at once; 0: 32 */
  uint64_t cache_limit;      /* bytes; 0: four texts as long as the context */
  uint64_t prefill_rows;     /* rows of prompts in a step that also decodes; 0: 128 */
  const char* chat_template; /* in place of the program's */
  /* As in rl_module_options. */
  const rl_backend_v1* const* backends;
  const char* const* backend_libraries;
  uint32_t n_backends;
  uint32_t n_backend_libraries;
  const rl_kernel_v1* const* kernels;
  const char* const* kernel_libraries;
  uint32_t n_kernels;
  uint32_t n_kernel_libraries;
} rl_llm_options;

/* Opens a program with a language model. `options` may be NULL. *llm is to be closed. Errors: as
 * rl_module_open(); RL_NOT_SUPPORTED: the program has no language model. Threads: any. */
RL_API rl_status rl_llm_open(const char* path, const rl_llm_options* options, rl_llm** llm,
                             rl_error* error);
/* The same for a program in memory, which must stay as it is until the model, its sessions,
 * grammars and adapters are closed. Threads: any. */
RL_API rl_status rl_llm_open_memory(const void* data, size_t bytes, const rl_llm_options* options,
                                    rl_llm** llm, rl_error* error);
/* Closes a handle; NULL is nothing to close. A model lives until its sessions, grammars and
 * adapters are closed, too. RL_INVALID_STATE while a thread uses the handle. Threads: one at a
 * time. */
RL_API rl_status rl_llm_close(rl_llm* llm, rl_error* error);

typedef struct rl_llm_info {
  uint32_t size;
  int32_t cache_dtype; /* of keys and values; -1 for an encoder, which has none */
  uint64_t vocabulary;
  uint64_t context;     /* positions of a text */
  uint64_t hidden;      /* elements of an embedding; 0: it makes none */
  uint64_t page_bytes;  /* of the cache, of 64 tokens */
  uint64_t cache_bytes; /* that are taken now */
  uint64_t cache_limit;
  uint32_t has_tokenizer;
  uint32_t has_chat_template;
} rl_llm_info;

/* What a model is. Threads: any. */
RL_API rl_status rl_llm_describe(rl_llm* llm, rl_llm_info* info, rl_error* error);

/* A trace of the model's steps: see rl_module_trace_start() and what follows it. Each waits for the
 * step that runs. Threads: any. */
RL_API rl_status rl_llm_trace_start(rl_llm* llm, const rl_trace_options* options, rl_error* error);
RL_API rl_status rl_llm_trace_stop(rl_llm* llm, rl_error* error);
RL_API rl_status rl_llm_trace_write(rl_llm* llm, rl_write_fn write, void* userdata,
                                    rl_error* error);
RL_API rl_status rl_llm_trace_values(rl_llm* llm, rl_write_fn write, void* userdata,
                                     rl_error* error);
RL_API rl_status rl_llm_trace_save(rl_llm* llm, const char* path, rl_error* error);

/* What RL_ADD_SPECIAL adds is what surrounds each text, such as a token for its beginning;
 * RL_PARSE_SPECIAL reads the texts of special tokens as these: not for texts of others. */
enum { RL_ADD_SPECIAL = 1, RL_PARSE_SPECIAL = 2, RL_SKIP_SPECIAL = 4 };

/* The next three fill an array of the caller with at most `capacity` items and set *count to how
 * many there are, which an array of NULL asks for; RL_INVALID_ARGUMENT if there are more, and
 * nothing is written then. RL_NOT_SUPPORTED if the program has no tokenizer, or no chat template.
 * Threads: any.
 *
 * The tokens of a text; `flags` are RL_ADD_SPECIAL and RL_PARSE_SPECIAL. */
RL_API rl_status rl_llm_encode(rl_llm* llm, rl_text_v1 text, uint32_t flags, int32_t* tokens,
                               size_t capacity, size_t* count, rl_error* error);
/* The text of tokens, in UTF-8 and without a NUL; `flags` is RL_SKIP_SPECIAL or 0. */
RL_API rl_status rl_llm_decode(rl_llm* llm, const int32_t* tokens, size_t n_tokens, uint32_t flags,
                               char* text, size_t capacity, size_t* count, rl_error* error);
/* The tokens of a conversation by the model's chat template. `json` is an object with "messages",
 * "add_generation_prompt", "tools" and what else the template reads. */
RL_API rl_status rl_llm_encode_chat(rl_llm* llm, rl_text_v1 json, int32_t* tokens, size_t capacity,
                                    size_t* count, rl_error* error);

/* What a text may be: it matches a regular expression, or is JSON that a schema accepts. To be
 * closed. RL_INVALID_ARGUMENT says what is wrong with it. Threads: any. */
RL_API rl_status rl_grammar_from_regex(rl_llm* llm, rl_text_v1 pattern, rl_grammar** grammar,
                                       rl_error* error);
RL_API rl_status rl_grammar_from_json_schema(rl_llm* llm, rl_text_v1 schema, rl_grammar** grammar,
                                             rl_error* error);
RL_API rl_status rl_grammar_close(rl_grammar* grammar, rl_error* error);

/* An adapter (LoRA) of the model, mapped. To be closed. Threads: any. */
RL_API rl_status rl_adapter_open(rl_llm* llm, const char* path, rl_adapter** adapter,
                                 rl_error* error);
RL_API rl_status rl_adapter_close(rl_adapter* adapter, rl_error* error);

typedef struct rl_generate_options {
  uint32_t size;
  uint32_t n;          /* texts for the prompt; 1 in a session */
  uint64_t max_tokens; /* of output; 0: as many as the context has room for */
  uint64_t seed;
  float temperature; /* 0: always the most probable token */
  float top_p;
  float min_p;
  float typical_p;
  uint32_t top_k; /* 0: all */
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  const rl_text_v1* stop;     /* texts that end the output, which are not part of it */
  const int32_t* stop_tokens; /* besides the model's own end tokens */
  uint32_t n_stop;
  uint32_t n_stop_tokens;
  uint32_t ignores_end; /* 1: the model's own end tokens do not end the output */
  uint32_t echoes;      /* 1: the output begins with the prompt */
  uint32_t has_special; /* 1: the text has the special tokens */
  uint32_t shifts;      /* 1: in a full context, half of what follows `keep` tokens is dropped */
  uint64_t keep;
  uint32_t guesses;    /* the most tokens that speculation proposes; 0: none */
  int32_t logprobs;    /* not negative: pieces have log probabilities */
  rl_grammar* grammar; /* NULL: anything */
  rl_adapter* adapter; /* NULL: the model alone, or the session's own */
} rl_generate_options;

/* What the model's makers recommend; to be changed and handed over. Threads: any. */
RL_API rl_status rl_llm_default_options(rl_llm* llm, rl_generate_options* options, rl_error* error);

enum {
  RL_FINISH_NONE = 0, /* it goes on */
  RL_FINISH_STOP = 1, /* an end token, a stop token or a stop text */
  RL_FINISH_LENGTH = 2,
  RL_FINISH_CONTEXT = 3, /* the context is full */
  RL_FINISH_CANCELLED = 4,
  RL_FINISH_FAILED = 5
};

/* What is new of a text; all is lent until the callback returns. */
typedef struct rl_piece {
  uint32_t size;
  uint32_t choice; /* which of the n texts */
  rl_text_v1 text; /* whole characters, in UTF-8 */
  const int32_t* tokens;
  const float* logprobs; /* of the tokens; NULL unless they were asked for */
  uint32_t n_tokens;     /* 0 while a long prompt is read, and in a last piece */
  uint32_t finish;       /* RL_FINISH_... */
} rl_piece;

/* Not 0: end all texts of this call. It is called by the thread that generates. */
typedef int32_t (*rl_piece_fn)(void* userdata, const rl_piece* piece);

typedef struct rl_statistics {
  uint32_t size;
  uint32_t finish; /* of the last text that ended */
  uint64_t prompt_tokens;
  uint64_t reused_tokens; /* of the prompt, that were in the cache */
  uint64_t output_tokens; /* of all texts */
  uint64_t guessed_tokens;
  uint64_t accepted_tokens;
  uint64_t recomputed_tokens;
  uint64_t steps;
  uint64_t submitted_ns; /* by a clock of any origin */
  uint64_t started_ns;
  uint64_t first_token_ns;
  uint64_t finished_ns;
} rl_statistics;

/* Generates texts after a prompt and returns when they have ended. `options` NULL: the defaults;
 * `write` and `statistics` may be NULL. Texts of several threads are computed together. A text that
 * was ended by `write` or rl_session_cancel() is no error. Errors: RL_INVALID_ARGUMENT names the
 * option or the token; RL_OUT_OF_RESOURCES: the cache has no room. Threads: any. */
RL_API rl_status rl_llm_generate(rl_llm* llm, const int32_t* prompt, size_t n_prompt,
                                 const rl_generate_options* options, rl_piece_fn write,
                                 void* userdata, rl_statistics* statistics, rl_error* error);

/* Vectors of texts, rl_llm_info.hidden numbers each, one after the other. `normalizes`: to the
 * length 1; `truncates`: texts beyond the context are cut, otherwise refused. RL_INVALID_ARGUMENT
 * if `capacity` numbers are too few, RL_NOT_SUPPORTED if the model makes none. Threads: any. */
RL_API rl_status rl_llm_embed(rl_llm* llm, const rl_text_v1* texts, uint32_t n_texts,
                              uint32_t normalizes, uint32_t truncates, float* vectors,
                              size_t capacity, rl_error* error);

/* A text that is kept, with its cache. To be closed. Threads: any. */
RL_API rl_status rl_session_open(rl_llm* llm, rl_session** session, rl_error* error);
/* From a file of rl_session_save(). `adapter` may be NULL. RL_INVALID_EXTERNAL_DATA for one that is
 * damaged, or of another model, adapter or type of cache. Threads: any. */
RL_API rl_status rl_session_restore(rl_llm* llm, const char* path, rl_adapter* adapter,
                                    rl_session** session, rl_error* error);
/* As rl_llm_close(). */
RL_API rl_status rl_session_close(rl_session* session, rl_error* error);

/* Adds the prompt to the text, and then what is generated: see rl_llm_generate(). An empty prompt
 * goes on with the text as it is. Threads: one at a time. */
RL_API rl_status rl_session_generate(rl_session* session, const int32_t* prompt, size_t n_prompt,
                                     const rl_generate_options* options, rl_piece_fn write,
                                     void* userdata, rl_statistics* statistics, rl_error* error);
/* Ends what another thread generates in the session, at the next token. Does nothing if there is
 * none. Threads: any. */
RL_API rl_status rl_session_cancel(rl_session* session, rl_error* error);
/* A session with the same text, which shares its cache. Threads: one at a time. */
RL_API rl_status rl_session_fork(rl_session* session, rl_session** copy, rl_error* error);
/* Drops the last `count` tokens. Threads: one at a time. */
RL_API rl_status rl_session_rewind(rl_session* session, size_t count, rl_error* error);
/* Replaces the text; the cache of what both begin with is kept. Threads: one at a time. */
RL_API rl_status rl_session_set_tokens(rl_session* session, const int32_t* tokens, size_t n_tokens,
                                       rl_error* error);
/* The tokens of the text, as rl_llm_encode() gives tokens. Threads: one at a time. */
RL_API rl_status rl_session_tokens(rl_session* session, int32_t* tokens, size_t capacity,
                                   size_t* count, rl_error* error);
/* Writes the text and its cache to a file. RL_ACCESS_FAILED if that cannot be done; what was there
 * stays then. Threads: one at a time. */
RL_API rl_status rl_session_save(rl_session* session, const char* path, rl_error* error);

#ifdef __cplusplus
}
#endif

#endif /* RUSHLIGHT_RUSHLIGHT_H_ */
