// What the runner prints of a program.
#pragma once

#include <string>

#include "rushlight/module/module.h"

namespace rushlight {

// "float32 at most [8, 6]", "int 3".
std::string describe(const ValueMeta& meta);
// Methods with inputs, outputs and memory.
void print_program(Module& module);
// A line for each kernel: its operator, its signature, and its key if it has one.
void print_kernels(const KernelTable& table);
// Sizes, least and greatest number, mean; with `all`, every number.
void print_value(size_t index, const EValue& value, bool all);

}  // namespace rushlight
