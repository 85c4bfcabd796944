// Files by descriptors.
#pragma once

#if defined(_WIN32)
static_assert(false, "compat_unistd.h has no form for Windows: open files by a DataLoader");
#else
#include <unistd.h>
#endif
