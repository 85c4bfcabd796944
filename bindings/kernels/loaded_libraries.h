// The shared libraries that this process has loaded, by whatever means.
#pragma once

#include <string>
#include <vector>

namespace rushlight::python {

// The paths of those that export the function `symbol`, in the order of loading, but for those that
// an earlier call of the process returned. It costs nothing where no library was loaded since.
// Empty on systems without such a list. To be called with the GIL held.
std::vector<std::string> new_libraries_with(const char* symbol);

}  // namespace rushlight::python
