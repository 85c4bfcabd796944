#include "rushlight/core/status.h"

#include <cstddef>

#include "rushlight/core/texts.h"

namespace rushlight {
namespace {

// The codes, and their names in the same order.
constexpr Code kCodes[] = {
    Code::Ok,
    Code::Internal,
    Code::InvalidState,
    Code::EndOfMethod,
    Code::AlreadyLoaded,
    Code::NotSupported,
    Code::NotImplemented,
    Code::InvalidArgument,
    Code::InvalidType,
    Code::OperatorMissing,
    Code::RegistrationExceedingMaxKernels,
    Code::RegistrationAlreadyRegistered,
    Code::NotFound,
    Code::MemoryAllocationFailed,
    Code::AccessFailed,
    Code::InvalidProgram,
    Code::InvalidExternalData,
    Code::OutOfResources,
    Code::DelegateInvalidCompatibility,
    Code::DelegateMemoryAllocationFailed,
    Code::DelegateInvalidHandle,
    Code::Cancelled,
};
constexpr char kNames[] =
    "Ok\0Internal\0InvalidState\0EndOfMethod\0AlreadyLoaded\0NotSupported\0NotImplemented\0"
    "InvalidArgument\0InvalidType\0OperatorMissing\0RegistrationExceedingMaxKernels\0"
    "RegistrationAlreadyRegistered\0NotFound\0MemoryAllocationFailed\0AccessFailed\0"
    "InvalidProgram\0InvalidExternalData\0OutOfResources\0DelegateInvalidCompatibility\0"
    "DelegateMemoryAllocationFailed\0DelegateInvalidHandle\0Cancelled\0?";

}  // namespace

const char* code_name(Code code) {
  size_t i = 0;
  while (i < sizeof(kCodes) / sizeof(kCodes[0]) && kCodes[i] != code) ++i;
  return text_at(kNames, i);
}

}  // namespace rushlight
