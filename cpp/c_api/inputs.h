// The caller's values as a method's inputs.
#pragma once

#include "rushlight/c_api/module_object.h"

namespace rushlight::c_api {

// The rl_value_v1 at `index` of an array whose items have the size of the first one. Returns
// InvalidArgument for a size that is not set.
Status read_item(const rl_value_v1* items, uint32_t index, rl_value_v1* value, Message* message);

// Checks a value and sets it; a tensor that the method cannot read where it lies is copied into the
// face's memory.
Status set_input(MethodFace& face, Method& method, uint32_t index, const rl_value_v1& value,
                 Message* message);

}  // namespace rushlight::c_api
