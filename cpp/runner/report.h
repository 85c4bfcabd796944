// What the runner prints about a program.
#pragma once

#include <string>

#include "rushlight/module/module.h"

namespace rushlight {

// Text such as "float32 at most [8, 6]" or "int 3".
std::string describe(const ValueMeta& meta);
// Prints the methods with their inputs, outputs and memory.
void print_program(Module& module);
// Prints a line for each kernel: its operator, its signature, and its key if it has one.
void print_kernels(const KernelTable& table);
// Prints sizes, minimum, maximum and mean; with `all`, every number.
void print_value(size_t index, const EValue& value, bool all);

}  // namespace rushlight
