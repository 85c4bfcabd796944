// What a backend is: it takes a payload that its compiler half wrote, and runs it. A backend is an
// object that its owner registers by id; the table is filled by explicit calls.
//
// This is the interface for backends that are compiled with the runtime. What comes as a library of
// its own, by another compiler or with other flags, hands over the C struct of rl_backend_v1.h
// (delegate/plugin.h makes a Backend of it).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/core/tensor_blocks.h"
#include "rushlight/delegate/options.h"
#include "rushlight/events/tracer.h"
#include "rushlight/platform/workers.h"

namespace rushlight {

class KernelTable;  // kernel/kernel.h

struct CompileSpec {
  StringView key;
  Span<const uint8_t> value;
};

// Where inside a delegate something failed: an id of the backend's own, a number or a text, by
// which the program's debug map knows the lines of Python that it came from.
class DelegatePlace {
 public:
  static constexpr size_t kCapacity = 128;  // of the text, its closing NUL included; more is cut

  void clear() {
    text_[0] = '\0';
    entered_ = kNowhere;
  }
  // The backend begins to work on the place `id`, which costs nothing: it is read if that crashes.
  void enter(int64_t id) { entered_ = id; }
  static constexpr int64_t kNowhere = INT64_MIN;
  int64_t entered() const { return entered_; }
  void set(int64_t id);
  void set(StringView id);
  bool empty() const { return text_[0] == '\0'; }
  const char* text() const { return text_; }  // of a number: its digits

 private:
  char text_[kCapacity] = {0};
  int64_t entered_ = kNowhere;
};

struct BackendInit {
  StringView method;
  Span<const uint8_t> payload;  // mapped from the program; lives as long as the program
  Span<const CompileSpec> specs;
  BackendOptions options;       // that were given at load
  const NamedData* named_data;  // the program's, then the external data that came with it
  Allocator* allocator;         // for what lives as long as the method
  Tracer* tracer;               // may be nullptr
  Message* message;             // where a failure is explained
  DelegatePlace* place;         // where inside the delegate it lies, if that can be told
  Workers* workers;             // the threads that runs may use; nullptr for the caller's alone
  const KernelTable* kernels = nullptr;  // for calls of kernels inside the payload
  bool check_kernels = false;            // see MethodOptions::check_backends
  // Set to false if the payload will not be read again: the memory that its pages take is given
  // back (DataLoader::release). It may still be read, at the price of fetching it again.
  bool keeps_payload = true;
};

struct KvCache;  // delegate/kv_cache.h

struct BackendRun {
  Allocator* scratch;  // until execute returns
  Tracer* tracer;
  Message* message;
  DelegatePlace* place;
  // How many of the arguments are inputs; the others are outputs. As far as the plan tells: see
  // count_delegate_inputs() in method/delegate_loader.cpp.
  size_t n_inputs;
  TensorBlocks* blocks;               // of resize()
  Workers* workers;                   // as in BackendInit
  const KvCache* kv_cache = nullptr;  // of a language model's runner, if one lends it to this run
  // While it is true, the backend may end with Cancelled; nullptr: it never is.
  const std::atomic<bool>* cancelled = nullptr;

  bool is_cancelled() const {
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  }

  // Gives an output the sizes of the result, and memory if it has no bound. Fails with a message
  // that has both shapes.
  Status resize(Tensor& output, Span<const int32_t> sizes) const;
  // Whether the value of a place inside the delegate is recorded.
  bool wants_value(DelegateId id) const {
    return tracer != nullptr && tracer->wants_delegate_value(id);
  }
  // Tells the value of a place, whose elements lie without gaps in row-major order; does nothing
  // if it is not wanted. Fails with a message for a dtype that traces cannot hold, for sizes that
  // no tensor has, and for bytes that are not as many as those take.
  Status tell_value(DelegateId id, DType dtype, Span<const int32_t> sizes,
                    Span<const uint8_t> bytes) const;
};

// One handle is used by one thread at a time; handles of methods that run on several threads are
// used at once, so what the backend itself holds needs a lock of its own.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual bool available() const = 0;
  // The handle that the other two are given; whatever it points to is the backend's. A payload that
  // is cut or of another version is DelegateInvalidCompatibility. What fails must leave nothing
  // behind: only a handle that was returned is destroyed, once.
  virtual Result<void*> init(BackendInit& init) = 0;
  // All delegates of the method have their handles: what these have in common may be finished.
  // Called once for each handle.
  virtual void loaded(void*) {}
  // Inputs first, then outputs; the backend resizes and writes the outputs. It must change nothing
  // else: not the inputs, nor the memory, dtype, rank or layout of an output.
  virtual Status execute(const BackendRun& run, void* handle, EValue* const* args,
                         size_t n_args) = 0;
  virtual void destroy(void* handle) = 0;
};

// Has no lock: add and remove while no other thread loads a method with it.
class BackendTable {
 public:
  static constexpr size_t kCapacity = 16;
  // `id` must outlive the table. RegistrationAlreadyRegistered for an id that is there.
  Status add(const char* id, Backend* backend);
  // Methods that are loaded keep using the backend. NotFound.
  Status remove(StringView id);
  Backend* find(StringView id) const;
  size_t size() const { return size_; }
  const char* id(size_t i) const { return entries_[i].id; }
  Backend* backend(size_t i) const { return entries_[i].backend; }

 private:
  struct Entry {
    const char* id = nullptr;
    Backend* backend = nullptr;
  };
  Entry entries_[kCapacity];
  size_t size_ = 0;
};

}  // namespace rushlight
