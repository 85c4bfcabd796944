#include "rushlight/kernel/loops/dispatch.h"

#include <atomic>
#include <cstdlib>

namespace rushlight::kernels {
namespace {

constexpr int kUnknown = -1;
std::atomic<int> g_isa{kUnknown};

constexpr const char* kNames[] = {"plain", "avx2", "avx512"};

Isa detect() {
  // A wish that is no name or that this machine cannot run is no reason to fail: widest instead.
  const char* wish = std::getenv("RUSHLIGHT_CPU");
  Isa isa;
  if (wish != nullptr && isa_by_name(wish, &isa) && isa_available(isa)) return isa;
  if (isa_available(Isa::Avx512)) return Isa::Avx512;
  return isa_available(Isa::Avx2) ? Isa::Avx2 : Isa::Plain;
}

}  // namespace

const char* isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

bool isa_by_name(StringView name, Isa* isa) {
  for (int i = 0; i < 3; ++i) {
    if (name == StringView(kNames[i])) {
      *isa = static_cast<Isa>(i);
      return true;
    }
  }
  return false;
}

bool isa_available(Isa isa) {
  if (isa == Isa::Plain) return true;
#if defined(RUSHLIGHT_MULTI_ISA)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (isa == Isa::Avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

Isa current_isa() {
  int isa = g_isa.load(std::memory_order_relaxed);
  if (isa == kUnknown) {
    isa = static_cast<int>(detect());
    g_isa.store(isa, std::memory_order_relaxed);
  }
  return static_cast<Isa>(isa);
}

bool select_isa(Isa isa) {
  if (!isa_available(isa)) return false;
  g_isa.store(static_cast<int>(isa), std::memory_order_relaxed);
  return true;
}

}  // namespace rushlight::kernels
