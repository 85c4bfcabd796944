#include "rushlight/method/running_method.h"

namespace rushlight {
namespace {

// In a shared library, the usual model of thread-local memory may allocate at its first use, which
// a handler of signals must not. A system without threads has one variable.
#if defined(__linux__)
[[gnu::tls_model("initial-exec")]] thread_local const Method* g_running = nullptr;
#elif defined(__unix__) || defined(__APPLE__)
thread_local const Method* g_running = nullptr;
#else
const Method* g_running = nullptr;
#endif

}  // namespace

const Method* running_method() { return g_running; }

RunningMethod::RunningMethod(const Method* method) : outer_(g_running) { g_running = method; }

RunningMethod::~RunningMethod() { g_running = outer_; }

}  // namespace rushlight
