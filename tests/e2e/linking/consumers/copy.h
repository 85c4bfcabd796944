// What a shared library with a Rushlight of its own exports (copy.cpp), and nothing else of it.
#pragma once

#include <stdbool.h>

#define COPY_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// Runs the method "forward" of a file, a sum of two tensors of shape (2, 3), by the copy's own
// kernel. False if it failed; `failure` then says why.
enum { COPY_FAILURE = 1024 };
COPY_API bool copy_run(const char* path, const float* self, const float* other, float* out,
                       char failure[COPY_FAILURE]);
// The copy's table of default backends; NULL if it has none.
COPY_API const void* copy_backends(void);

#ifdef __cplusplus
}
#endif
