/* Loads several shared libraries that each have a Rushlight (copy.cpp), for all to see, and runs a
 * file in all of them at once, many times: `copies add.pte libfirst.so libsecond.so ...`. Prints,
 * for each, what it computes from self = 1 and other = 1, and the address of its table of backends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "copy.h"

enum { MAX_COPIES = 8, RUNS = 50 };

typedef struct Copy {
  const char* file;
  bool (*run)(const char*, const float*, const float*, float*, char*);
  const void* (*backends)(void);
  pthread_t thread;
  float sum;
  char failure[COPY_FAILURE];
} Copy;

static void* run_often(void* argument) {
  Copy* copy = argument;
  const float ones[6] = {1, 1, 1, 1, 1, 1};
  for (int i = 0; i < RUNS; ++i) {
    float out[6] = {0};
    if (!copy->run(copy->file, ones, ones, out, copy->failure)) return NULL;
    for (int k = 0; k < 6; ++k) {
      if (i + k > 0 && out[k] != copy->sum) strcpy(copy->failure, "its results differ");
      copy->sum = out[k];
    }
  }
  return NULL;
}

/* POSIX says that dlsym()'s pointer may be a function's, ISO C that it may not. */
static int find(void* library, const char* name, void* function) {
  void* found = dlsym(library, name);
  memcpy(function, &found, sizeof(found));
  return found != NULL;
}

int main(int argc, char** argv) {
  Copy copies[MAX_COPIES] = {0};
  const int count = argc - 2;
  if (count < 1 || count > MAX_COPIES) return 2;
  for (int i = 0; i < count; ++i) {
    void* library = dlopen(argv[i + 2], RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    copies[i].file = argv[1];
    if (!find(library, "copy_run", &copies[i].run)) return 1;
    if (!find(library, "copy_backends", &copies[i].backends)) return 1;
  }
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&copies[i].thread, NULL, run_often, &copies[i]) != 0) return 1;
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(copies[i].thread, NULL);
    if (copies[i].failure[0] != '\0') {
      fprintf(stderr, "%s: %s\n", argv[i + 2], copies[i].failure);
      return 1;
    }
    printf("%g %p\n", copies[i].sum, copies[i].backends());
  }
  return 0;
}
