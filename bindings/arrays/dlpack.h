// The binary interface of DLPack 1.x (https://dmlc.github.io/dlpack): how array libraries lend each
// other memory. Only what the binding uses is declared; layouts are fixed by the specification.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::python {

constexpr int32_t kDLCPU = 1;

enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8E4M3FN = 10,
  kDLFloat8E4M3FNUZ = 11,
  kDLFloat8E5M2 = 12,
  kDLFloat8E5M2FNUZ = 13,
};

constexpr uint64_t kDLReadOnly = 1;

struct DLDevice {
  int32_t type;
  int32_t id;
};

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; nullptr: row-major
  uint64_t byte_offset;
};

// The layout before 1.0, in capsules named "dltensor".
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLVersion {
  uint32_t major;
  uint32_t minor;
};

// In capsules named "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

// The table of C functions that a tensor type offers as `__dlpack_c_exchange_api__`, a capsule
// named "dlpack_exchange_api". Functions return 0, or -1 with a Python error set.
struct DLExchangeApi {
  DLVersion version;
  void* previous;
  int (*allocate)(DLTensor* like, DLManagedTensorVersioned** out, void* error,
                  void (*set_error)(void* error, const char* kind, const char* message));
  int (*from_object)(void* object, DLManagedTensorVersioned** out);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** object);
  int (*view)(void* object, DLTensor* out);  // does not own; may be nullptr
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace rushlight::python
