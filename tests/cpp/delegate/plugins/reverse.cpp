// A C++ backend with another ABI than the runtime's: its containers have another layout under
// -D_GLIBCXX_DEBUG, and none of them is passed across. Reverses a float32 tensor.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "rl_backend_v1.h"

namespace {

struct Reverse {
  std::vector<float> copy;
  std::string method;
};

int32_t init(void*, const rl_init_v1* in, void** handle) {
  *handle = new Reverse{{}, std::string(in->method.data, in->method.size)};
  return RL_OK;
}

int32_t execute(void*, void* handle, const rl_call_v1* call) {
  auto& reverse = *static_cast<Reverse*>(handle);
  rl_value_v1 x = {}, y = {};
  x.size = y.size = sizeof(x);
  if (call->host->value(call->context, 0, &x) != RL_OK) return RL_INTERNAL;
  if (call->host->value(call->context, 1, &y) != RL_OK) return RL_INTERNAL;
  reverse.copy.resize(x.nbytes / sizeof(float));
  if (x.nbytes == 0 || x.nbytes != y.nbytes || x.dtype != 6) {
    const std::string text = reverse.method + " takes float32 of the output's size";
    call->host->explain(call->context, {text.data(), text.size()});
    return RL_INVALID_ARGUMENT;
  }
  std::memcpy(reverse.copy.data(), x.data, x.nbytes);
  std::reverse(reverse.copy.begin(), reverse.copy.end());
  std::memcpy(y.data, reverse.copy.data(), y.nbytes);
  return RL_OK;
}

void destroy(void*, void* handle) { delete static_cast<Reverse*>(handle); }

const rl_backend_v1 kReverse = {RL_BACKEND_V1_VERSION,
                                sizeof(rl_backend_v1),
                                "Reverse",
                                nullptr,
                                nullptr,
                                init,
                                execute,
                                destroy};

}  // namespace

extern "C" const rl_backend_v1* rl_get_backend_v1(uint32_t index) {
  return index == 0 ? &kReverse : nullptr;
}
