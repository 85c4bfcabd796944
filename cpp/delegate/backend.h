// What a backend is: it takes a payload that its compiler half wrote, and runs it. A backend is an
// object that its owner registers by id; the table is filled by explicit calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/events/tracer.h"

namespace rushlight {

struct CompileSpec {
  StringView key;
  Span<const uint8_t> value;
};

struct BackendInit {
  StringView method;
  Span<const uint8_t> payload;  // mapped from the program; lives as long as the program
  Span<const CompileSpec> specs;
  const NamedData* named_data;  // the program's, then the external data that came with it
  Allocator* allocator;         // for what lives as long as the method
  Tracer* tracer;               // may be nullptr
  Message* message;             // where a failure is explained
};

struct BackendRun {
  Allocator* scratch;  // until execute returns
  Tracer* tracer;
  Message* message;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual bool available() const = 0;
  // The handle that the other two are given; whatever it points to is the backend's.
  virtual Result<void*> init(const BackendInit& init) = 0;
  // Inputs first, then outputs; the backend resizes and writes the outputs.
  virtual Status execute(const BackendRun& run, void* handle, EValue* const* args,
                         size_t n_args) = 0;
  virtual void destroy(void* handle) = 0;
};

class BackendTable {
 public:
  static constexpr size_t kCapacity = 16;
  // `id` must outlive the table. RegistrationAlreadyRegistered for an id that is there.
  Status add(const char* id, Backend* backend);
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
