#include "rushlight/kernel/loops/dispatch.h"

#include <atomic>
#include <cstdlib>

#include "rushlight/core/message.h"

#if defined(RUSHLIGHT_X86_ISAS)
#include <cpuid.h>
#elif defined(RUSHLIGHT_ARM_ISAS) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(RUSHLIGHT_ARM_ISAS) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace rushlight::kernels {
namespace {

constexpr int kUnknown = -1;
std::atomic<int> g_isa{kUnknown};

constexpr const char* kNames[] = {"plain", "avx2",    "avx512",  "avx512vnni",
                                  "neon",  "neondot", "neoni8mm"};

Isa best_isa() {
  Isa best = Isa::Plain;
  for (Isa isa : kIsas) {
    if (isa_available(isa)) best = isa;
  }
  return best;
}

#if defined(RUSHLIGHT_X86_ISAS)

// Asked of the processor itself: the compiler's own answers bring a table of processors.
bool all(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// True if the system saves these registers when it switches threads.
bool system_saves(unsigned registers) {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return all(low, registers);
}

// What the flags in cmake/RushlightTargets.cmake let the compiler use.
bool has(Isa isa) {
  if (isa > Isa::Avx512Vnni) return false;
  constexpr unsigned kVectors = 0x6, kWideVectors = 0xe6;  // registers, as XCR0 numbers them
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  if (!all(ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) || !system_saves(kVectors))
    return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || !all(ebx, bit_AVX2)) return false;
  if (isa == Isa::Avx2) return true;
  return all(ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL) &&
         system_saves(kWideVectors) && (isa == Isa::Avx512 || all(ecx, bit_AVX512VNNI));
}

#elif defined(RUSHLIGHT_ARM_ISAS)

#if defined(__linux__)

// Headers of an older system do not name them.
constexpr unsigned long kHasDot = 1ul << 20;   // of AT_HWCAP
constexpr unsigned long kHasI8mm = 1ul << 13;  // of AT_HWCAP2

bool has(Isa isa) {
  if (isa < Isa::Neon) return false;
  const unsigned long bits = getauxval(AT_HWCAP);
  if ((bits & HWCAP_ASIMD) == 0) return false;
  if (isa == Isa::Neon) return true;
  if ((bits & kHasDot) == 0) return false;
  return isa == Isa::NeonDot || (getauxval(AT_HWCAP2) & kHasI8mm) != 0;
}

#elif defined(__APPLE__)

bool has_feature(const char* name) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}

bool has(Isa isa) {
  if (isa == Isa::NeonDot) return has_feature("hw.optional.arm.FEAT_DotProd");
  if (isa == Isa::NeonI8mm) return has(Isa::NeonDot) && has_feature("hw.optional.arm.FEAT_I8MM");
  return isa == Isa::Neon;
}

#else

bool has(Isa isa) { return isa == Isa::Neon; }

#endif

#else

bool has(Isa) { return false; }

#endif

// The instruction set that was asked for, or the best one instead; *refusal says why.
Isa choose(const char* wish, const char** refusal) {
  Isa isa;
  if (wish == nullptr || *wish == '\0') return best_isa();
  if (!isa_by_name(wish, &isa)) {
    *refusal = "is none of plain, avx2, avx512, avx512vnni, neon, neondot, neoni8mm";
  } else if (isa_available(isa)) {
    return isa;
  } else {
    *refusal = "is an instruction set that this processor, or this build, does not have";
  }
  return best_isa();
}

Isa detect() {
  const char* wish = std::getenv("RUSHLIGHT_CPU");
  const char* refusal = nullptr;
  const Isa isa = choose(wish, &refusal);
  int expected = kUnknown;
  const bool first = g_isa.compare_exchange_strong(expected, static_cast<int>(isa));
  if (first && refusal != nullptr) {
    warn("RUSHLIGHT_CPU=%.*s %s; using %s", 32, wish, refusal, isa_name(isa));
  }
  return first ? isa : static_cast<Isa>(expected);
}

}  // namespace

const char* isa_name(Isa isa) { return kNames[static_cast<int>(isa)]; }

bool isa_by_name(StringView name, Isa* isa) {
  for (Isa known : kIsas) {
    if (name == StringView(isa_name(known))) {
      *isa = known;
      return true;
    }
  }
  return false;
}

#if defined(RL_SELECTED_DOT_ISA)

#define RL_NAME_OF(isa) #isa
#define RL_NAME_OF_SELECTED(isa) RL_NAME_OF(isa)

bool isa_available(Isa isa) {
  constexpr const char* kSelected = RL_NAME_OF_SELECTED(RL_SELECTED_DOT_ISA);
  return StringView(isa_name(isa)) == StringView(kSelected) && (isa == Isa::Plain || has(isa));
}

bool isa_is_there() {
  for (Isa isa : kIsas) {
    if (isa_available(isa)) return true;
  }
  return false;
}

#else

bool isa_available(Isa isa) { return isa == Isa::Plain || has(isa); }

#endif

Isa current_isa() {
  const int isa = g_isa.load(std::memory_order_relaxed);
  return isa == kUnknown ? detect() : static_cast<Isa>(isa);
}

bool select_isa(Isa isa) {
  if (!isa_available(isa)) return false;
  g_isa.store(static_cast<int>(isa), std::memory_order_relaxed);
  return true;
}

}  // namespace rushlight::kernels
