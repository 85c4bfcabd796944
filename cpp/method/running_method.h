// Which method runs on a thread, for handlers of crashes. Only methods with a report are known.
#pragma once

#include "rushlight/method/method.h"

namespace rushlight {

// The innermost method that this thread loads or runs, or works for; nullptr if there is none. May
// be called in a handler of signals.
const Method* running_method();

// Names the method of this thread, until the end of a block.
class RunningMethod {
 public:
  // nullptr: none.
  explicit RunningMethod(const Method* method);
  explicit RunningMethod(const Method& method) : RunningMethod(&method) {}
  ~RunningMethod();
  RunningMethod(const RunningMethod&) = delete;
  RunningMethod& operator=(const RunningMethod&) = delete;

 private:
  const Method* outer_;
};

}  // namespace rushlight
