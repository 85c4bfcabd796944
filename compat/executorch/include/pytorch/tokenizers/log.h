// Lines for the log: ExecuTorch's own.
#pragma once

#include <executorch/runtime/platform/log.h>

// TK_LOG(level, format, ...), with the levels Debug, Info, Error and Fatal.
#define TK_LOG(level_, ...) ET_LOG(level_, __VA_ARGS__)
