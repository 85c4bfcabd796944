// Runs recorded kernel calls without Python or torch, so that the sanitizers see every byte that a
// kernel accesses: replay_cases FILE ... Files are written by tests/ops/recording.py, which
// documents the format. Each tensor has a separate block, so reading beyond its end is an error.
// Every call runs on every instruction set, with one thread and with two. Calls that were refused
// must be refused again, and inputs that are not written must stay unchanged.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/generator.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/portable.h"
#include "rushlight/module/thread_pool.h"

namespace rushlight {
namespace {

// Used in place of a tensor's tag: an output, filled with kGarbage, or an input that is also
// written.
constexpr uint8_t kOut = 100;
constexpr uint8_t kUpdated = 101;
constexpr uint8_t kGarbage = 0x5a;

struct Reader {
  std::vector<uint8_t> bytes;
  size_t at = 0;

  bool open(const char* path) {
    std::FILE* file = std::fopen(path, "rb");
    if (file == nullptr) return false;
    uint8_t block[1 << 16];
    for (size_t n; (n = std::fread(block, 1, sizeof block, file)) > 0;) {
      bytes.insert(bytes.end(), block, block + n);
    }
    return std::fclose(file) == 0;
  }
  void copy(void* out, size_t size) {
    if (size > 0) std::memcpy(out, bytes.data() + at, size);
    at += size;
  }
  template <class T>
  T take() {
    T value;
    copy(&value, sizeof value);
    return value;
  }
  bool done() const { return at >= bytes.size(); }
};

// A block of exactly the bytes that a call may use. It is allocated again only if their number
// changes.
struct Scratch {
  std::unique_ptr<uint8_t[]> data;
  size_t size = 0;

  // Aligned, so that a kernel that adapts to its scratch memory always has the same amount.
  Allocator of(size_t bytes) {
    constexpr size_t kAlignment = KernelContext::kScratchAlignment;
    if (data == nullptr || size != bytes) data.reset(new uint8_t[bytes + kAlignment]);
    size = bytes;
    const size_t off = (0 - reinterpret_cast<uintptr_t>(data.get())) % kAlignment;
    return Allocator(data.get() + off, bytes);
  }
};

struct Block {
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  uint8_t dim_order[kMaxRank];
  std::unique_ptr<uint8_t[]> data;
  std::vector<uint8_t> before;  // of an input that is written
  Tensor tensor;
};

bool near(double got, double wanted, double relative, double absolute) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return true;
  return std::fabs(got - wanted) <= absolute + relative * std::fabs(wanted);
}

// The scale of errors in sums that cancel out: the root mean square of the values, or 1 if that is
// less.
double scale_of(const std::vector<double>& values) {
  double sum = 0;
  size_t n = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++n;
  }
  return n == 0 ? 1 : std::max(1.0, std::sqrt(sum / static_cast<double>(n)));
}

bool values_equal(const Tensor& got, const uint8_t* wanted) {
  size_t n = static_cast<size_t>(got.numel);
  if (n == 0) return true;
  DType dtype = got.dtype;
  if (dtype == DType::Complex64) {  // alternating real and imaginary parts
    dtype = DType::Float32;
    n *= 2;
  }
  double relative;
  switch (dtype) {
    case DType::Float64:
      relative = 1e-9;
      break;
    case DType::Float32:
      relative = 3e-5;
      break;
    case DType::Float16:
      relative = 4e-3;
      break;
    case DType::BFloat16:
      relative = 3e-2;
      break;
    default:
      return std::memcmp(got.data, wanted, n * element_size(dtype)) == 0;
  }
  std::vector<double> a(n);
  std::vector<double> b(n);
  kernels::convert(got.data, dtype, a.data(), DType::Float64, n);
  kernels::convert(wanted, dtype, b.data(), DType::Float64, n);
  const double absolute = relative * scale_of(b);
  for (size_t i = 0; i < n; ++i) {
    if (!near(a[i], b[i], relative, absolute)) return false;
  }
  return true;
}

// One call, built from the file in the same way as a method builds it.
class Case {
 public:
  Case(Reader& reader, Scratch& scratch) : reader_(reader), scratch_(scratch) {
    name_.resize(reader.take<uint32_t>());
    reader.copy(name_.data(), name_.size());
    refused_ = reader.take<uint8_t>() != 0;
    scratch_bytes_ = reader.take<uint32_t>();
    const uint32_t n = reader.take<uint32_t>();
    for (uint32_t i = 0; i < n; ++i) inputs_.push_back(value());
  }

  // Runs the call and compares with the recorded results; false if they differ.
  bool run(const KernelTable& table, const char* isa, size_t threads) {
    const Kernel* kernel = nullptr;
    for (size_t i = 0; i < table.size(); ++i) {
      if (name_ == table[i].name) kernel = &table[i];
    }
    Message message;
    const bool ran = kernel != nullptr && call(*kernel, threads, message);
    const char* wrong = nullptr;
    if (kernel == nullptr) {
      wrong = "there is no such kernel";
    } else if (refused_) {
      wrong = ran ? "it runs, though it was refused" : untouched() ? nullptr : "it wrote an input";
    } else {
      bool same = true;
      for (const Block* block : written_) same = expected(*block) && same;
      if (!same) wrong = "another result than was recorded";
    }
    if (wrong == nullptr && ran != refused_) return true;
    std::fprintf(stderr, "%s on %s, threads=%zu: %s %s\n", name_.c_str(), isa, threads,
                 wrong == nullptr ? "" : wrong, ran ? "" : message.text());
    return false;
  }

 private:
  bool call(const Kernel& kernel, size_t threads, Message& message) {
    std::vector<EValue*> args;
    size_t next = 0;
    for (const char* letter = kernel.signature; *letter != '\0'; ++letter) {
      if (*letter == '?') continue;
      if (*letter == '=') {
        args.push_back(args.empty() ? &values_.emplace_back() : args.back());
      } else if (*letter == 'r') {
        args.push_back(&values_.emplace_back());
        args.back()->set_int(0);
      } else if (next < inputs_.size()) {
        args.push_back(inputs_[next++]);
      }
    }
    Allocator scratch = scratch_.of(scratch_bytes_);
    PoolWorkers workers(threads);
    Generator generator(Generator::kDefaultSeed);
    KernelContext context(message, &scratch, threads > 1 ? &workers : nullptr, nullptr, &generator);
    if (!check_arguments(kernel, args.data(), args.size(), message).ok()) return false;
    return kernel.fn(context, args.data()).ok();
  }

  bool expected(const Block& out) {
    bool same = reader_.take<uint8_t>() == out.tensor.rank;
    for (size_t d = 0; d < out.tensor.rank; ++d) same &= reader_.take<int32_t>() == out.sizes[d];
    std::vector<uint8_t> wanted(reader_.take<uint64_t>());
    reader_.copy(wanted.data(), wanted.size());
    return same && values_equal(out.tensor, wanted.data());
  }

  bool untouched() const {
    for (const Block* block : written_) {
      const std::vector<uint8_t>& before = block->before;
      if (!before.empty() && std::memcmp(block->data.get(), before.data(), before.size()) != 0) {
        return false;
      }
    }
    return true;
  }

  EValue* value() {
    EValue* result = &values_.emplace_back();
    const uint8_t tag = reader_.take<uint8_t>();
    const bool written = tag == kOut || tag == kUpdated;
    result->tag = written ? Tag::Tensor : static_cast<Tag>(tag);
    switch (result->tag) {
      case Tag::None:
        break;
      case Tag::Tensor:
        result->t = tensor(tag);
        break;
      case Tag::Double:
        result->d = reader_.take<double>();
        break;
      case Tag::Int:
      case Tag::Bool:
        result->i = reader_.take<int64_t>();
        break;
      case Tag::String:
      case Tag::BoolList:
      case Tag::DoubleList:
        plain_list(*result);
        break;
      default:
        boxed_list(*result);
        break;
    }
    return result;
  }

  void plain_list(EValue& value) {
    const uint32_t n = reader_.take<uint32_t>();
    const size_t item = value.tag == Tag::DoubleList ? sizeof(double) : 1;
    lists_.emplace_back(new double[(n * item + 7) / 8 + 1]);
    reader_.copy(lists_.back().get(), n * item);
    value.list = {lists_.back().get(), n};
  }

  void boxed_list(EValue& value) {
    const uint32_t n = reader_.take<uint32_t>();
    std::vector<EValue*> items;
    for (uint32_t k = 0; k < n; ++k) items.push_back(this->value());
    boxes_.push_back(std::move(items));
    value.list = {boxes_.back().data(), n};
  }

  Tensor* tensor(uint8_t tag) {
    Block& block = blocks_.emplace_back();
    Tensor& t = block.tensor;
    t.dtype = static_cast<DType>(reader_.take<uint8_t>());
    t.rank = reader_.take<uint8_t>();
    t.numel = 1;
    for (size_t d = 0; d < t.rank; ++d) t.numel *= block.sizes[d] = reader_.take<int32_t>();
    reader_.copy(block.dim_order, t.rank);
    const size_t nbytes = static_cast<size_t>(t.numel) * element_size(t.dtype);
    block.data.reset(new uint8_t[nbytes]);
    if (tag == kOut) {
      std::memset(block.data.get(), kGarbage, nbytes);
    } else {
      reader_.copy(block.data.get(), nbytes);
    }
    if (tag == kOut || tag == kUpdated) written_.push_back(&block);
    if (tag == kUpdated) block.before.assign(block.data.get(), block.data.get() + nbytes);
    t.data = block.data.get();
    t.sizes = block.sizes;
    t.strides = block.strides;
    t.dim_order = block.dim_order;
    t.dynamism = Dynamism::Bounded;
    t.capacity = t.numel;
    strides_of(t.shape(), t.dim_order, block.strides);
    return &t;
  }

  Reader& reader_;
  Scratch& scratch_;
  std::string name_;
  bool refused_;
  size_t scratch_bytes_;
  std::vector<EValue*> inputs_;
  std::vector<const Block*> written_;
  std::deque<EValue> values_;
  std::deque<Block> blocks_;
  std::deque<std::unique_ptr<double[]>> lists_;
  std::deque<std::vector<EValue*>> boxes_;
};

int replay(const char* path, const KernelTable& table) {
  Reader reader;
  Scratch scratch;
  if (!reader.open(path)) {
    std::fprintf(stderr, "%s: cannot be read\n", path);
    return 1;
  }
  size_t cases = 0;
  size_t wrong = 0;
  for (kernels::Isa isa : kernels::kIsas) {
    if (!kernels::isa_available(isa) || !kernels::select_isa(isa)) continue;
    for (size_t threads : {size_t{1}, size_t{2}}) {
      for (reader.at = 0; !reader.done(); ++cases) {
        Case one(reader, scratch);
        wrong += one.run(table, kernels::isa_name(isa), threads) ? 0 : 1;
      }
    }
  }
  std::printf("%s: %zu calls, %zu wrong\n", path, cases, wrong);
  return cases > 0 && wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rushlight

int main(int argc, char** argv) {
  static rushlight::KernelTable table;
  if (!rushlight::register_portable_kernels(table).ok()) return 1;
  int status = argc > 1 ? 0 : 1;
  for (int i = 1; i < argc; ++i) status |= rushlight::replay(argv[i], table);
  return status;
}
