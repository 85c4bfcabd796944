// The old profiler's macros, which do nothing: traces come from an EventTracer.
#pragma once

#include <stdint.h>

#define EXECUTORCH_PROFILE_CREATE_BLOCK(name) ((void)(name))
#define EXECUTORCH_BEGIN_PROF(name) \
  {                                 \
  }
#define EXECUTORCH_END_PROF(token_id) ((void)(token_id))
#define EXECUTORCH_SCOPE_PROF(name) ((void)(name))
#define EXECUTORCH_PROFILE_INSTRUCTION_SCOPE(chain_idx, instruction_idx) \
  ((void)(chain_idx), (void)(instruction_idx))
#define EXECUTORCH_RESET_PROFILE_RESULTS() \
  {                                        \
  }
#define EXECUTORCH_TRACK_ALLOCATOR(name) ((void)(name), -1)
#define EXECUTORCH_TRACK_ALLOCATION(id, size) ((void)(id), (void)(size))
#define EXECUTORCH_DUMP_PROFILE_RESULTS(result)                                            \
  static_assert(sizeof(result) == 0,                                                       \
                "the old profiler is not built: give the Module an ETDumpGen, whose dump " \
                "Inspector reads")
