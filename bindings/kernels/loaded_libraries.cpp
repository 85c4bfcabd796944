#include "kernels/loaded_libraries.h"

#include <set>
#include <utility>

#if defined(__linux__) || defined(__FreeBSD__)
#include <dlfcn.h>
#include <link.h>
#elif defined(__APPLE__)
#include <dlfcn.h>
#include <mach-o/dyld.h>
#endif

namespace rushlight::python {

#if defined(__linux__) || defined(__FreeBSD__) || defined(__APPLE__)

namespace {

#if defined(__APPLE__)

// Changes whenever a library is loaded or unloaded, as far as the system tells.
std::pair<uint64_t, uint64_t> count_changes() { return {_dyld_image_count(), 0}; }

std::vector<std::string> paths_of_all() {
  std::vector<std::string> paths;
  for (uint32_t i = 0; i < _dyld_image_count(); ++i) {
    const char* path = _dyld_get_image_name(i);
    if (path != nullptr) paths.emplace_back(path);
  }
  return paths;
}

#else

std::pair<uint64_t, uint64_t> count_changes() {
  std::pair<uint64_t, uint64_t> counts;
  const auto read = [](dl_phdr_info* info, size_t, void* to) {
    *static_cast<std::pair<uint64_t, uint64_t>*>(to) = {info->dlpi_adds, info->dlpi_subs};
    return 1;  // the numbers are the same for every library
  };
  dl_iterate_phdr(read, &counts);
  return counts;
}

std::vector<std::string> paths_of_all() {
  std::vector<std::string> paths;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    const bool has_path = info->dlpi_name != nullptr && *info->dlpi_name != '\0';
    if (has_path) static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &paths);
  return paths;
}

#endif

// The path of the library that has the symbol among those that `path` and its dependencies have;
// empty if none has.
std::string find_owner(const std::string& path, const char* symbol) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (handle == nullptr) return {};
  void* address = ::dlsym(handle, symbol);
  Dl_info info = {};
  std::string owner;
  if (address != nullptr && ::dladdr(address, &info) != 0) owner = info.dli_fname;
  ::dlclose(handle);
  return owner;
}

}  // namespace

std::vector<std::string> new_libraries_with(const char* symbol) {
  static std::pair<uint64_t, uint64_t> seen_changes;
  static auto* seen = new std::set<std::string>;
  std::vector<std::string> owners;
  const auto changes = count_changes();
  if (changes == seen_changes) return owners;
  seen_changes = changes;
  std::set<std::string> loaded;
  for (const std::string& path : paths_of_all()) {
    loaded.insert(path);
    if (seen->count(path) != 0 || find_owner(path, symbol) != path) continue;
    owners.push_back(path);
  }
  *seen = std::move(loaded);  // one that was unloaded may come back
  return owners;
}

#else

std::vector<std::string> new_libraries_with(const char*) { return {}; }

#endif

}  // namespace rushlight::python
