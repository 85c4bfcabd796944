// What a handle of a module leads to: the module, and what it was opened with.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/c_api/backends.h"
#include "rushlight/c_api/contract/contract.h"
#include "rushlight/c_api/entry.h"
#include "rushlight/c_api/trace.h"
#include "rushlight/module/module.h"

namespace rushlight::c_api {

// What a module shares with its clones.
struct Origin {
  std::vector<uint64_t> image;  // of a program that the caller read
  Backends backends;
};

// One method, as it is called.
struct MethodFace {
  struct Output {
    void* own = nullptr;  // the module's memory, while the caller's is in its place
    size_t own_bytes = 0;
    void* data = nullptr;  // the caller's
    size_t bytes = 0;
  };

  // Frees what belongs to the method while it is loaded.
  void forget() {
    for (Output& output : outputs) output = Output();
    for (std::vector<uint64_t>& copy : copies) std::vector<uint64_t>().swap(copy);
  }

  Contract contract;
  std::vector<int64_t> known;                 // the values that a call keeps: Contract::n_values()
  std::vector<std::vector<uint64_t>> copies;  // of inputs that cannot be read where they lie
  std::vector<Output> outputs;
};

struct ModuleObject {
  static constexpr Kind kKind = Kind::Module;

  std::shared_ptr<Origin> origin;
  std::atomic<bool> cancelled{false};
  std::unique_ptr<FailureReport> report;
  std::unique_ptr<Trace> trace;
  std::vector<std::unique_ptr<MethodFace>> faces;  // one for each method, made when it is loaded
  Module module;                                   // destroyed first

  // The index of a method; its face, which is made if there is none. InvalidArgument for another
  // name.
  Result<size_t> find(const char* method, Message* message) const;
  Result<MethodFace*> face(size_t method, Message* message);
  // A method that is loaded, after loading it if necessary.
  Result<Method*> load(size_t method, Failing& failing);
};

}  // namespace rushlight::c_api
