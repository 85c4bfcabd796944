// Inner loops, compiled once per instruction set, and the choice between them at run time.
//
// A loops file `loops/foo.cpp` holds the contiguous inner loops of a family. CMake compiles it with
// RL_ISA set to the name of a namespace: `plain`, on x86 also `avx2` and `avx512`, on 64-bit ARM
// also `neon`, each with its own flags. Files `loops/dot_foo.cpp`, of dot products of bytes, are
// compiled for what processors add to these as well: `avx512vnni`, `neondot` and `neoni8mm`. A
// header `loops/foo.h` describes the loops as a struct of function pointers:
//
//   struct FooLoops { void (*scale)(const float* x, float* out, size_t n, float factor); };
//   RL_LOOPS(FooLoops, foo_loops)            // in namespace rushlight::kernels; or RL_DOT_LOOPS
//
// and the file defines the struct once for its namespace:
//
//   namespace RL_ISA { const FooLoops foo_loops = {scale}; }
//
// Kernels call `foo_loops().scale(...)`, which picks the struct for the processor.
//
// A selective build may have the loops of one instruction set alone (kernel/selection.h): then that
// one is chosen when it is compiled.
//
// A loops file may call no inline function or template with external linkage (std::min, …): the
// linker could keep the copy with the widest instructions for the whole program. Everything in it
// is in an anonymous namespace or in RL_ISA; C library functions are fine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/span.h"
#include "rushlight/kernel/selection.h"

namespace rushlight::kernels {

enum class Isa : uint8_t { Plain, Avx2, Avx512, Avx512Vnni, Neon, NeonDot, NeonI8mm };
// In ascending order: the last one that a processor has is the best.
constexpr Isa kIsas[] = {Isa::Plain, Isa::Avx2,    Isa::Avx512,  Isa::Avx512Vnni,
                         Isa::Neon,  Isa::NeonDot, Isa::NeonI8mm};

// False if this build has loops of one instruction set alone, which this processor does not have:
// nothing may run then.
#if defined(RL_SELECTED_DOT_ISA)
bool isa_is_there();
#else
constexpr bool isa_is_there() { return true; }
#endif
// The best instruction set that this build and this processor have, or what the environment
// variable RUSHLIGHT_CPU asks for by name, if they have it; a line of the log says if they have
// not. Found out once.
Isa current_isa();
// True if the build holds loops for `isa` and the processor can run them.
bool isa_available(Isa isa);
// Uses `isa` from now on, for tests; false (and no change) if it is not available.
bool select_isa(Isa isa);
const char* isa_name(Isa isa);
// False if `name` is none of plain, avx2, avx512, avx512vnni, neon, neondot, neoni8mm.
bool isa_by_name(StringView name, Isa* isa);

}  // namespace rushlight::kernels

#define RL_DECLARE_LOOPS(isa, Type, name) \
  namespace isa {                         \
  extern const Type name;                 \
  }

#if defined(RL_ISA)
#define RL_LOOPS(Type, name) RL_DECLARE_LOOPS(RL_ISA, Type, name)
#define RL_DOT_LOOPS(Type, name) RL_LOOPS(Type, name)
#elif defined(RL_SELECTED_ISA)
#define RL_ONLY_LOOPS(isa, Type, name) \
  RL_DECLARE_LOOPS(isa, Type, name)    \
  inline const Type& name() { return isa::name; }
#define RL_LOOPS(Type, name) RL_ONLY_LOOPS(RL_SELECTED_ISA, Type, name)
#define RL_DOT_LOOPS(Type, name) RL_ONLY_LOOPS(RL_SELECTED_DOT_ISA, Type, name)
#elif defined(RUSHLIGHT_X86_ISAS)
#define RL_LOOPS(Type, name)                       \
  RL_DECLARE_LOOPS(plain, Type, name)              \
  RL_DECLARE_LOOPS(avx2, Type, name)               \
  RL_DECLARE_LOOPS(avx512, Type, name)             \
  inline const Type& name() {                      \
    switch (::rushlight::kernels::current_isa()) { \
      case ::rushlight::kernels::Isa::Avx512:      \
      case ::rushlight::kernels::Isa::Avx512Vnni:  \
        return avx512::name;                       \
      case ::rushlight::kernels::Isa::Avx2:        \
        return avx2::name;                         \
      default:                                     \
        return plain::name;                        \
    }                                              \
  }
#define RL_DOT_LOOPS(Type, name)                   \
  RL_DECLARE_LOOPS(plain, Type, name)              \
  RL_DECLARE_LOOPS(avx2, Type, name)               \
  RL_DECLARE_LOOPS(avx512, Type, name)             \
  RL_DECLARE_LOOPS(avx512vnni, Type, name)         \
  inline const Type& name() {                      \
    switch (::rushlight::kernels::current_isa()) { \
      case ::rushlight::kernels::Isa::Avx512Vnni:  \
        return avx512vnni::name;                   \
      case ::rushlight::kernels::Isa::Avx512:      \
        return avx512::name;                       \
      case ::rushlight::kernels::Isa::Avx2:        \
        return avx2::name;                         \
      default:                                     \
        return plain::name;                        \
    }                                              \
  }
#elif defined(RUSHLIGHT_ARM_ISAS)
#define RL_LOOPS(Type, name)                                                                       \
  RL_DECLARE_LOOPS(plain, Type, name)                                                              \
  RL_DECLARE_LOOPS(neon, Type, name)                                                               \
  inline const Type& name() {                                                                      \
    const bool is_plain = ::rushlight::kernels::current_isa() == ::rushlight::kernels::Isa::Plain; \
    return is_plain ? plain::name : neon::name;                                                    \
  }
#define RL_DOT_LOOPS(Type, name)                   \
  RL_DECLARE_LOOPS(plain, Type, name)              \
  RL_DECLARE_LOOPS(neon, Type, name)               \
  RL_DECLARE_LOOPS(neondot, Type, name)            \
  RL_DECLARE_LOOPS(neoni8mm, Type, name)           \
  inline const Type& name() {                      \
    switch (::rushlight::kernels::current_isa()) { \
      case ::rushlight::kernels::Isa::NeonI8mm:    \
        return neoni8mm::name;                     \
      case ::rushlight::kernels::Isa::NeonDot:     \
        return neondot::name;                      \
      case ::rushlight::kernels::Isa::Neon:        \
        return neon::name;                         \
      default:                                     \
        return plain::name;                        \
    }                                              \
  }
#else
#define RL_LOOPS(Type, name)          \
  RL_DECLARE_LOOPS(plain, Type, name) \
  inline const Type& name() { return plain::name; }
#define RL_DOT_LOOPS(Type, name) RL_LOOPS(Type, name)
#endif

// Before a loop whose iterations do not depend on one another, though its pointers may be equal.
#if defined(__clang__)
#define RL_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define RL_VECTORIZE _Pragma("GCC ivdep")
#else
#define RL_VECTORIZE
#endif

// For functions whose arguments must stay in registers, such as those of a tile.
#if defined(__GNUC__)
#define RL_INLINE inline __attribute__((always_inline))
#else
#define RL_INLINE inline
#endif
