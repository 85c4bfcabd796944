// A handler of signals for Unix: when a method that has a report (ModuleOptions::failure) crashes,
// in a kernel, a backend or a thread that works for them, its report is written, with the
// instruction that ran. Then the handler that was there before takes over.
#pragma once

#include "rushlight/core/message.h"

namespace rushlight {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT from now on. The report is written to `path`
// when something crashes, over a file that is there. The handler calls nothing but what POSIX
// allows in one: it does not allocate. It has a stack of its own on this thread, so that a stack
// that is full is reported as well. A second call changes the path, and puts the handler back where
// another took its place. Returns AccessFailed if there can be no such file, NotSupported on other
// systems.
Status install_crash_report(const char* path, Message& message);
// Likewise, to an open file, socket or pipe, which stays open.
Status install_crash_report(int file, Message& message);

}  // namespace rushlight
