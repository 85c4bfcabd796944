#include "rushlight/core/status.h"

namespace rushlight {

const char* code_name(Code code) {
  switch (code) {
    case Code::Ok:
      return "Ok";
    case Code::Internal:
      return "Internal";
    case Code::InvalidState:
      return "InvalidState";
    case Code::EndOfMethod:
      return "EndOfMethod";
    case Code::AlreadyLoaded:
      return "AlreadyLoaded";
    case Code::NotSupported:
      return "NotSupported";
    case Code::NotImplemented:
      return "NotImplemented";
    case Code::InvalidArgument:
      return "InvalidArgument";
    case Code::InvalidType:
      return "InvalidType";
    case Code::OperatorMissing:
      return "OperatorMissing";
    case Code::RegistrationExceedingMaxKernels:
      return "RegistrationExceedingMaxKernels";
    case Code::RegistrationAlreadyRegistered:
      return "RegistrationAlreadyRegistered";
    case Code::NotFound:
      return "NotFound";
    case Code::MemoryAllocationFailed:
      return "MemoryAllocationFailed";
    case Code::AccessFailed:
      return "AccessFailed";
    case Code::InvalidProgram:
      return "InvalidProgram";
    case Code::InvalidExternalData:
      return "InvalidExternalData";
    case Code::OutOfResources:
      return "OutOfResources";
    case Code::DelegateInvalidCompatibility:
      return "DelegateInvalidCompatibility";
    case Code::DelegateMemoryAllocationFailed:
      return "DelegateMemoryAllocationFailed";
    case Code::DelegateInvalidHandle:
      return "DelegateInvalidHandle";
    case Code::Cancelled:
      return "Cancelled";
  }
  return "?";
}

}  // namespace rushlight
