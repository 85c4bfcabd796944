// From a program to a runner: the model, its tokenizer and what its texts begin and end with.
#pragma once

#include "rushlight/llm/runner/module_model.h"
#include "rushlight/llm/runner/runner.h"

namespace rushlight::llm {

struct LoadOptions {
  ModuleOptions module;
  CacheType cache = CacheType::Automatic;
  RunnerOptions runner;
  Span<const char* const> data;  // data files (.ptd) with weights that are not in the program
  // In place of those in the program; empty: the program's. They must live as long as the runner.
  Span<const uint8_t> tokenizer;  // a table (docs/llm/tokenizer.md)
  StringView chat_template;
  // Kernels, and shared libraries of kernels, besides those of `module` (Module::add_kernels).
  Span<const rl_kernel_v1* const> kernels;
  Span<const char* const> kernel_libraries;
};

// Maps a program (.pte) and loads it into a runner that is not open yet. The program has one of the
// forms of runner/program_model.h.
Status load(const char* path, const LoadOptions& options, Runner* runner, Message* message);
// The same for a program in memory, which must live as long as the runner.
Status load_memory(Span<const uint8_t> program, const LoadOptions& options, Runner* runner,
                   Message* message);

// The program of a runner that one of these opened; to be used while no step runs
// (Scheduler::Turn).
Module& module_of(Runner& runner);

}  // namespace rushlight::llm
