// The number of cores that this process may use. Linux has files that list the hyperthreads of each
// core, and the quota of each control group that the process is in.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "rushlight/module/thread_pool.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace rushlight {
namespace {

#if defined(__linux__)

constexpr size_t kMaxProcessors = 8192;
constexpr size_t kMaxPath = 4096;

void cut_end(char* line) {
  char* end = std::strchr(line, '\n');
  if (end != nullptr) *end = '\0';
}

// Reads the first line of a file, without its end; false if there is none.
bool read_line(const char* path, char* line, size_t size) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return false;
  const bool got = std::fgets(line, static_cast<int>(size), file) != nullptr;
  std::fclose(file);
  if (got) cut_end(line);
  return got;
}

// Hyperthreads of one core list the same processors. Only the first allowed one is counted.
size_t allowed_cores() {
  cpu_set_t allowed[kMaxProcessors / CPU_SETSIZE];
  cpu_set_t counted[kMaxProcessors / CPU_SETSIZE];
  CPU_ZERO_S(sizeof(allowed), allowed);
  CPU_ZERO_S(sizeof(counted), counted);
  if (sched_getaffinity(0, sizeof(allowed), allowed) != 0) return 0;
  size_t cores = 0;
  for (size_t cpu = 0; cpu < kMaxProcessors; ++cpu) {
    if (!CPU_ISSET_S(cpu, sizeof(allowed), allowed)) continue;
    char path[128];
    char line[256];
    std::snprintf(path, sizeof(path),
                  "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
    size_t core = cpu;
    if (read_line(path, line, sizeof(line))) core = std::strtoul(line, nullptr, 10);
    if (core >= kMaxProcessors) core = cpu;
    // NOLINTNEXTLINE(*ArrayBound): core is below kMaxProcessors
    if (CPU_ISSET_S(core, sizeof(counted), counted)) continue;
    CPU_SET_S(core, sizeof(counted), counted);
    ++cores;
  }
  return cores;
}

// The number of processors, rounded up, that `quota` microseconds in each `period` are equal to.
size_t processors_of(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return SIZE_MAX;
  return static_cast<size_t>((quota + period - 1) / period);
}

size_t quota_of_group(const char* folder) {  // version 2: "max 100000" or "150000 100000"
  char path[kMaxPath];
  char line[64];
  std::snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", folder);
  if (!read_line(path, line, sizeof(line))) return SIZE_MAX;
  char* rest = line;
  const long long quota = std::strtoll(line, &rest, 10);  // 0 for "max"
  return processors_of(quota, std::strtoll(rest, nullptr, 10));
}

size_t quota_of_old_group(const char* folder) {  // version 1; -1 is no quota
  char path[kMaxPath];
  char quota[64];
  char period[64];
  std::snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
  if (!read_line(path, quota, sizeof(quota))) return SIZE_MAX;
  std::snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
  if (!read_line(path, period, sizeof(period))) return SIZE_MAX;
  return processors_of(std::strtoll(quota, nullptr, 10), std::strtoll(period, nullptr, 10));
}

// The least quota of a group and of the groups that contain it. In a container, the group's name
// may be the host's, and only the outermost group may exist.
size_t least_quota(char* folder, size_t (*quota_of)(const char*)) {
  if (std::strcmp(folder, "/") == 0) folder[0] = '\0';
  size_t least = SIZE_MAX;
  for (;;) {
    const size_t here = quota_of(folder);
    if (here < least) least = here;
    char* last = std::strrchr(folder, '/');
    if (last == nullptr) return least;
    *last = '\0';
  }
}

// "0::/a/b" is a group of version 2, "3:cpu,cpuacct:/a/b" one of version 1.
size_t quota() {
  size_t least = SIZE_MAX;
  std::FILE* groups = std::fopen("/proc/self/cgroup", "r");
  if (groups == nullptr) return least;
  char line[kMaxPath - 64];
  while (std::fgets(line, sizeof(line), groups) != nullptr) {
    cut_end(line);
    char* controllers = std::strchr(line, ':');
    char* folder = controllers != nullptr ? std::strchr(controllers + 1, ':') : nullptr;
    if (folder == nullptr) continue;
    *folder++ = '\0';
    ++controllers;
    const bool old = std::strcmp(controllers, "cpu") == 0 ||
                     std::strncmp(controllers, "cpu,", 4) == 0 ||
                     std::strstr(controllers, ",cpu") != nullptr;
    if (!old && controllers[0] != '\0') continue;
    const size_t here = least_quota(folder, old ? quota_of_old_group : quota_of_group);
    if (here < least) least = here;
  }
  std::fclose(groups);
  return least;
}

size_t count_cores() {
  const size_t cores = allowed_cores();
  const size_t limit = quota();
  return cores < limit ? cores : limit;
}

#else

size_t count_cores() { return std::thread::hardware_concurrency(); }

#endif

}  // namespace

size_t usable_cores() {
  static const size_t cores = count_cores();
  return cores > 0 ? cores : 1;
}

}  // namespace rushlight
