// rushlight_runner --verify: the test cases of a bundled program.
#pragma once

#include <string>

#include "rushlight/module/bundle.h"

namespace rushlight {

// Runs the test cases of a method, or of all methods if it is empty, and prints a line for each.
// Returns true if all have passed; false, too, if there are none.
bool verify_and_print(Module& module, const std::string& method,
                      const ToleranceOverride& tolerance);

}  // namespace rushlight
