// The shared library that an address is in, where the program asks for it (ET_USE_LIBDL).
#pragma once

#if defined(ET_USE_LIBDL)
#include <dlfcn.h>
#endif

static constexpr const char* DYNAMIC_LIBRARY_NOT_SUPPORTED = "NOT_SUPPORTED";
static constexpr const char* DYNAMIC_LIBRARY_NOT_FOUND = "NOT_FOUND";

extern "C" inline const char* et_pal_get_shared_library_name([[maybe_unused]] const void* address) {
#if defined(ET_USE_LIBDL)
  Dl_info info;
  const bool found = dladdr(address, &info) != 0 && info.dli_fname != nullptr;
  return found ? info.dli_fname : DYNAMIC_LIBRARY_NOT_FOUND;
#else
  return DYNAMIC_LIBRARY_NOT_SUPPORTED;
#endif
}
