// For tests of the CPU engine: a payload that calls a kernel of the user's own between operators of
// the engine, and kernels for it.
#pragma once

#include <string>
#include <vector>

#include "engine_payload.h"
#include "rushlight/kernel/foreign_kernel.h"

namespace rushlight {
namespace test {

constexpr char kMix[] = "acme::mix.out";

// acme::mix.out(Tensor x, Tensor? y, int[] shifts, float a, SymInt n, Tensor[] more, str how, *,
// Tensor(a!) out, Tensor(b!) total): out = a x + sum(shifts) + n + sum(more), total = [n].
inline Status mix(KernelContext& ctx, EValue* const* args) {
  const Tensor& x = args[0]->tensor();
  Tensor& out = args[7]->tensor();
  Tensor& total = args[8]->tensor();
  const int32_t one[] = {1};
  RL_TRY(ctx.resize_like(out, x));
  RL_TRY(ctx.resize(total, one));
  if (!args[1]->is_none() || args[6]->string() != StringView("sum")) {
    return ctx.fail(Code::InvalidArgument, "y or how is wrong");
  }
  float* sums = static_cast<float*>(ctx.scratch(x.nbytes()));
  if (sums == nullptr && x.numel > 0) return ctx.fail(Code::MemoryAllocationFailed, "no scratch");
  double shift = static_cast<double>(args[4]->to_int());
  for (size_t k = 0; k < args[2]->size(); ++k) shift += static_cast<double>(args[2]->int_at(k));
  for (int64_t i = 0; i < x.numel; ++i) {
    sums[i] = static_cast<float>(args[3]->to_double() * x.as<float>()[i] + shift);
    for (size_t k = 0; k < args[5]->size(); ++k) {
      const Tensor& more = *args[5]->tensor_at(k);
      if (same_layout(more, x)) sums[i] += more.as<float>()[i];
    }
  }
  for (int64_t i = 0; i < x.numel; ++i) out.as<float>()[i] = sums[i];
  total.as<float>()[0] = static_cast<float>(args[4]->to_int());
  return {};
}

// Like `mix`, but it writes an element more than the result has.
inline Status mix_and_more(KernelContext& ctx, EValue* const* args) {
  const Status status = mix(ctx, args);
  const Tensor& out = args[7]->tensor();
  if (status.ok()) out.as<float>()[out.numel] = 1;
  return status;
}

// Like `mix`, but its result has a row less.
inline Status mix_less(KernelContext& ctx, EValue* const* args) {
  const int32_t sizes[] = {args[0]->tensor().size(0) - 1, 4};
  return ctx.resize(args[7]->tensor(), sizes);
}

// A table with one kernel, which may be called in delegates or not.
class MixTable {
 public:
  explicit MixTable(KernelFn fn = mix,
                    const char* signature = "t?tIdiTSww=", bool in_delegates = true)
      : kernel_{kMix, signature, fn, nullptr, &own_} {
    own_.in_delegates = in_delegates;
    CHECK(table_.add({&kernel_, 1}).ok());
  }
  MixTable(const MixTable&) = delete;
  MixTable& operator=(const MixTable&) = delete;
  const KernelTable* table() const { return &table_; }

 private:
  ForeignKernel own_;
  Kernel kernel_;
  KernelTable table_;
};

inline Table argument_of(schema::ArgumentKind kind, uint32_t count = 0,
                         const std::vector<int64_t>& integers = {},
                         const std::vector<int32_t>& expressions = {}) {
  Table table;
  table.scalar(0, kind).scalar(1, count);
  if (!integers.empty()) table.ref(2, vector_of(integers));
  if (!expressions.empty()) table.ref(3, vector_of(expressions));
  return table;
}

// x [rows, 4], at most `most` rows: mix(2 x, None, [3, rows], 0.5, rows, [x, 2 x], "sum"), with its
// result in scratch memory. Bytes behind that are shared memory, too.
struct KernelGraph : EngineGraph {
  std::vector<Table> kernel_arguments;
  std::string name = kMix;
  std::vector<uint8_t> dim_orders = {0, 1, 0, 1, 0, 1, 0, 1, 0};

  explicit KernelGraph(int64_t most = 6) {
    using Kind = schema::ArgumentKind;
    version = 10;
    n_inputs = 1;
    n_outputs = 2;
    scratch_size = static_cast<uint64_t>(most) * 32 + 64;
    expressions = {{ExpressionKind::INPUT_SIZE, 0, 0}};
    const uint64_t behind = static_cast<uint64_t>(most) * 16;
    values = {{{most, 4}, {4, 1}, Place::INPUT, 0, 0, {0, -1}, {}, -1},
              {{most, 4}, {4, 1}, Place::SCRATCH, 0, 0, {0, -1}, {}, -1},
              {{most, 4}, {4, 1}, Place::SCRATCH, 0, behind, {0, -1}, {}, -1},
              {{most, 4}, {4, 1}, Place::OUTPUT, 0, 0, {0, -1}, {}, -1},
              {{1}, {1}, Place::OUTPUT, 1, 0, {}, {}, -1}};
    arguments = {0, 3, 4};
    Table scale, text;
    scale.scalar(0, Kind::FLOAT).ref(4, vector_of<double>({0.5}));
    text.scalar(0, Kind::TEXT).ref(5, string_of("sum"));
    kernel_arguments = {argument_of(Kind::TENSOR),
                        argument_of(Kind::NONE),
                        argument_of(Kind::INTEGERS, 0, {3, most}, {-1, 0}),
                        scale,
                        argument_of(Kind::INTEGER, 0, {most}, {0}),
                        argument_of(Kind::TENSORS, 2),
                        text,
                        argument_of(Kind::RESULT),
                        argument_of(Kind::RESULT)};
    make_nodes();
  }

  // After a change of the kernel's name, arguments or dim orders.
  void make_nodes() {
    constexpr uint32_t kLoad = 0, kStore = 1, kMulValue = 54, kTwo = 0x40000000;
    Table program, twice, call;
    program.ref(0, vector_of<uint32_t>({tile_word(kLoad, 0, 0), 0, 0, tile_word(kMulValue, 1, 0), 0,
                                        kTwo, tile_word(kStore, 1, 1), 0, 0}));
    program.ref(1, vector_of<uint32_t>({0, 1}));
    twice.ref(0, program.node());
    call.ref(0, string_of(name)).ref(1, tables_of(kernel_arguments)).ref(2, vector_of(dim_orders));
    nodes = {{schema::Operation::Elementwise, twice, {}, {}},
             {schema::Operation::KernelCall, call, {1, 0, 1}, {2, 4}},
             {schema::Operation::Copy, {}, {2}, {3}}};
  }
};

}  // namespace test
}  // namespace rushlight
