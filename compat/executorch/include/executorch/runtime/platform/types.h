// The types of the platform layer, for C and C++.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
typedef uint64_t et_timestamp_t;  // in ticks of the platform
#ifdef __cplusplus
}
#endif
