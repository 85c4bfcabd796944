// What becomes of a method's outputs.
#pragma once

#include <executorch/runtime/core/evalue.h>

#include <string>
#include <vector>

namespace runner {

using Values = std::vector<executorch::runtime::EValue>;

// The bytes of output i, if it is a tensor, to `name`-i.bin. False if a file cannot be written.
bool write_outputs(const Values& outputs, const std::string& name);
// A line for each element.
void print_all(const Values& outputs);
// A paragraph for each output, with its first and last 100 elements.
void print_summary(const Values& outputs);

}  // namespace runner
