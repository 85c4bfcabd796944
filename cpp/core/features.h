// What this build of the runtime has. Both parts are there unless the build leaves them out
// (RUSHLIGHT_TRACING and RUSHLIGHT_FAILURE_REPORTS in CMake; docs/size.md); their interfaces stay,
// and a method that is asked for a part that was left out refuses with a message.
#pragma once

namespace rushlight {

#if defined(RUSHLIGHT_NO_TRACING)
constexpr bool kHasTracing = false;
#else
constexpr bool kHasTracing = true;
#endif

#if defined(RUSHLIGHT_NO_FAILURE_REPORTS)
constexpr bool kHasFailureReports = false;
#else
constexpr bool kHasFailureReports = true;
#endif

}  // namespace rushlight
