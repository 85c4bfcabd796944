#include "rushlight/module/debug/crash_report.h"

#include "rushlight/method/running_method.h"

#if defined(__unix__) || defined(__APPLE__)
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#endif

namespace rushlight {

#if defined(__unix__) || defined(__APPLE__)

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kN = sizeof(kSignals) / sizeof(kSignals[0]);
constexpr size_t kMaxPath = 4096;
constexpr size_t kStackBytes = size_t{1} << 16;

struct sigaction g_before[kN];
char g_path[kMaxPath];  // absolute; empty: `g_file` counts
int g_file = -1;
std::atomic_flag g_is_written = ATOMIC_FLAG_INIT;
alignas(16) unsigned char g_stack[kStackBytes];

size_t place_of(int signal) {
  size_t i = 0;
  while (i + 1 < kN && kSignals[i] != signal) ++i;
  return i;
}

void write_all(int file, Span<const uint8_t> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(file, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

void write_report(const FailureReport& report) {
  if (g_path[0] == '\0') return write_all(g_file, report.content());
  const int file = ::open(g_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  write_all(file, report.content());
  ::close(file);
}

// Only the first crash is reported: those of other threads that come meanwhile wait for the end.
void report(const Method& method, int signal, const siginfo_t* info) {
  if (g_is_written.test_and_set()) {
    const struct timespec second = {1, 0};
    ::nanosleep(&second, nullptr);
    return;
  }
  const bool has_address = info != nullptr && info->si_code > 0 && signal != SIGABRT;
  const uint64_t address =
      has_address ? static_cast<uint64_t>(reinterpret_cast<uintptr_t>(info->si_addr)) : 0;
  for (const bool has_details : {false, true}) {
    // A file is written twice, since a second crash would end the process here.
    if (!has_details && g_path[0] == '\0') continue;
    const FailureReport* made =
        method.report_crash(static_cast<uint32_t>(signal), address, has_details);
    if (made != nullptr) write_report(*made);
  }
}

// Gives the signal to the handler that was there before. A fault is raised again by the instruction
// that raised it; a signal that was sent is sent again, and comes when this handler has returned.
void hand_over(int signal, siginfo_t* info) {
  ::sigaction(signal, &g_before[place_of(signal)], nullptr);
  if (info == nullptr || info->si_code <= 0 || signal == SIGABRT) ::raise(signal);
}

void handle(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const Method* method = running_method();
  const struct sigaction& before = g_before[place_of(signal)];
  if (method != nullptr) {
    report(*method, signal, info);
    hand_over(signal, info);
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);  // no matter of ours: a handler may repair it
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    hand_over(signal, info);
  }
  errno = saved;
}

Status install(Message& message) {
  stack_t stack = {};
  if (::sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) != 0) {
    stack.ss_sp = g_stack;
    stack.ss_size = sizeof(g_stack);
    stack.ss_flags = 0;
    (void)::sigaltstack(&stack, nullptr);
  }
  for (size_t i = 0; i < kN; ++i) {
    struct sigaction action = {};
    struct sigaction before = {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (::sigaction(kSignals[i], nullptr, &before) == 0) {
      const bool is_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == &handle;
      if (is_ours) continue;
      g_before[i] = before;
      if (::sigaction(kSignals[i], &action, nullptr) == 0) continue;
    }
    return message.fail(Code::AccessFailed, "signal %d cannot be handled: %s", kSignals[i],
                        ::strerror(errno));
  }
  return {};
}

// The path with the folder that the process is in, since that may change.
bool make_absolute(const char* path, char* to) {
  size_t n = 0;
  if (path[0] != '/') {
    if (::getcwd(to, kMaxPath) == nullptr) return false;
    n = ::strlen(to);
    if (n + 1 < kMaxPath) to[n++] = '/';
  }
  const size_t size = ::strlen(path);
  if (n + size >= kMaxPath) {
    errno = ENAMETOOLONG;
    return false;
  }
  ::memcpy(to + n, path, size + 1);
  return true;
}

// Whether the file can be written; makes none.
bool can_write(const char* path) {
  struct stat status = {};
  const bool is_there = ::stat(path, &status) == 0;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  ::close(file);
  if (!is_there) ::unlink(path);
  return true;
}

}  // namespace

Status install_crash_report(const char* path, Message& message) {
  char absolute[kMaxPath];
  if (!make_absolute(path, absolute) || !can_write(absolute)) {
    return message.fail(Code::AccessFailed, "%s cannot be written: %s", path, ::strerror(errno));
  }
  ::memcpy(g_path, absolute, sizeof(g_path));
  g_is_written.clear();
  return install(message);
}

Status install_crash_report(int file, Message& message) {
  if (::fcntl(file, F_GETFD) < 0) {
    return message.fail(Code::AccessFailed, "file %d is not open", file);
  }
  g_path[0] = '\0';
  g_file = file;
  g_is_written.clear();
  return install(message);
}

#else

Status install_crash_report(const char*, Message& message) {
  return message.fail(Code::NotSupported, "this system has no signals");
}

Status install_crash_report(int, Message& message) {
  return message.fail(Code::NotSupported, "this system has no signals");
}

#endif

}  // namespace rushlight
