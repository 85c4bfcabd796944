// Calling one kernel from Python, for tests and benchmarks: arguments are built as a method would
// build them, checked against the kernel's signature, and written in place.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rushlight/core/tensor.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/kernel/loops/dispatch.h"
#include "rushlight/kernels/portable/portable.h"
#include "rushlight/module/thread_pool.h"

namespace nb = nanobind;

namespace rushlight {
namespace {

const KernelTable& portable_table() {
  static const std::unique_ptr<KernelTable> table = [] {
    auto filled = std::make_unique<KernelTable>();
    if (!register_portable_kernels(*filled).ok()) {
      throw std::runtime_error("the table of portable kernels could not be filled");
    }
    return filled;
  }();
  return *table;
}

DType dtype_of(const nb::ndarray<>& array) {
  using Kind = nb::dlpack::dtype_code;
  const nb::dlpack::dtype d = array.dtype();
  const auto is = [&](Kind kind, int bits) {
    return d.code == static_cast<uint8_t>(kind) && d.bits == bits;
  };
  if (is(Kind::Float, 32)) return DType::Float32;
  if (is(Kind::Float, 64)) return DType::Float64;
  if (is(Kind::Float, 16)) return DType::Float16;
  if (is(Kind::Bfloat, 16)) return DType::BFloat16;
  if (is(Kind::Bool, 8)) return DType::Bool;
  if (is(Kind::Int, 8)) return DType::Int8;
  if (is(Kind::Int, 16)) return DType::Int16;
  if (is(Kind::Int, 32)) return DType::Int32;
  if (is(Kind::Int, 64)) return DType::Int64;
  if (is(Kind::UInt, 8)) return DType::UInt8;
  if (is(Kind::UInt, 16)) return DType::UInt16;
  if (is(Kind::UInt, 32)) return DType::UInt32;
  if (is(Kind::UInt, 64)) return DType::UInt64;
  if (is(Kind::Complex, 64)) return DType::Complex64;
  if (is(Kind::Complex, 128)) return DType::Complex128;
  throw nb::type_error("an array of this element type cannot be a tensor");
}

// A tensor and the arrays that it points to.
struct OwnedTensor {
  nb::ndarray<> array;
  int32_t sizes[kMaxRank];
  int32_t strides[kMaxRank];
  uint8_t dim_order[kMaxRank];
  Tensor tensor;
};

// Dimensions from the greatest stride to the smallest; equal strides keep their order.
void order_by_stride(const nb::ndarray<>& array, uint8_t* dim_order) {
  const size_t rank = array.ndim();
  for (size_t i = 0; i < rank; ++i) {
    size_t k = i;
    for (; k > 0 && array.stride(dim_order[k - 1]) < array.stride(i); --k) {
      dim_order[k] = dim_order[k - 1];
    }
    dim_order[k] = static_cast<uint8_t>(i);
  }
}

void check_dense(const OwnedTensor& owned) {
  for (size_t d = 0; d < owned.array.ndim(); ++d) {
    if (owned.sizes[d] > 1 && owned.tensor.numel > 0 && owned.array.stride(d) != owned.strides[d]) {
      throw nb::value_error("a tensor must be dense: no gaps, no repeats, in its dim order");
    }
  }
}

// The values of one call, kept alive until it is over.
class Call {
 public:
  Call(const std::string& name, const nb::list& args, size_t scratch_bytes, size_t threads,
       std::optional<uint64_t> seed)
      : scratch_bytes_(scratch_bytes),
        scratch_(scratch_bytes + KernelContext::kScratchAlignment),
        workers_(threads) {
    if (seed) generator_.emplace(*seed);
    const KernelTable& table = portable_table();
    for (size_t i = 0; i < table.size(); ++i) {
      if (name == table[i].name) kernel_ = &table[i];
    }
    if (kernel_ == nullptr) throw nb::key_error(name.c_str());
    build(args);
  }

  void run() {
    Message message;
    Status status = check_arguments(*kernel_, args_.data(), args_.size(), message);
    if (status.ok()) status = run_unchecked(message);
    if (!status.ok()) {
      throw std::runtime_error(std::string(code_name(status.code())) + ": " + message.text());
    }
  }

  double seconds_per_call(size_t repeats) {
    run();
    Message message;
    const auto start = std::chrono::steady_clock::now();
    for (size_t i = 0; i < repeats; ++i) {
      if (!run_unchecked(message).ok()) throw std::runtime_error(message.text());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return took.count() / static_cast<double>(repeats);
  }

  // The scalar that the kernel wrote (None if it writes none), then the final sizes of every
  // tensor argument (None for other arguments), lists of tensors as lists of sizes.
  nb::tuple results() const {
    nb::object scalar = nb::none();
    nb::list shapes;
    for (size_t i = 0; i < n_passed_; ++i) shapes.append(sizes_of(*args_[i]));
    if (args_.size() > n_passed_) scalar = scalar_of(*args_.back());
    return nb::make_tuple(scalar, shapes);
  }

 private:
  Status run_unchecked(Message& message) {
    // Aligned, so that a kernel which adapts to its scratch memory always has the same.
    const size_t off = reinterpret_cast<uintptr_t>(scratch_.data());
    uint8_t* start = scratch_.data() + (0 - off) % KernelContext::kScratchAlignment;
    Allocator allocator(start, scratch_bytes_);
    KernelContext context(message, &allocator, workers_.count() > 1 ? &workers_ : nullptr, nullptr,
                          generator_ ? &*generator_ : nullptr);
    return kernel_->fn(context, args_.data());
  }

  static nb::object scalar_of(const EValue& value) {
    switch (value.tag) {
      case Tag::Int:
        return nb::int_(value.i);
      case Tag::Double:
        return nb::float_(value.d);
      case Tag::Bool:
        return nb::bool_(value.i != 0);
      default:
        return nb::none();
    }
  }

  static nb::object sizes_of(const EValue& value) {
    nb::list sizes;
    if (value.tag == Tag::Tensor) {
      for (int32_t size : value.t->shape()) sizes.append(size);
      return sizes;
    }
    if (value.tag != Tag::TensorList) return nb::none();
    for (size_t k = 0; k < value.size(); ++k) {
      EValue item;
      item.tag = Tag::Tensor;
      item.t = value.tensor_at(k);
      sizes.append(sizes_of(item));
    }
    return sizes;
  }

  void build(const nb::list& args) {
    size_t passed = 0;
    for (const char* letter = kernel_->signature; *letter != '\0'; ++letter) {
      if (*letter == '?') continue;
      if (*letter == '=') {
        args_.push_back(args_.empty() ? add() : args_.back());
        continue;
      }
      if (*letter == 'r') {
        args_.push_back(add());
        args_.back()->set_int(0);
        continue;
      }
      if (passed == args.size()) throw nb::value_error("too few arguments");
      args_.push_back(value_of(*letter, args[passed++]));
    }
    n_passed_ = passed;
    if (passed != args.size()) throw nb::value_error("too many arguments");
  }

  EValue* add() { return &values_.emplace_back(); }

  EValue* value_of(char letter, nb::handle object) {
    EValue* value = add();
    if (object.is_none()) return value;
    if (nb::isinstance<nb::bool_>(object)) {
      value->set_bool(nb::cast<bool>(object));
    } else if (nb::isinstance<nb::int_>(object)) {
      value->set_int(nb::cast<int64_t>(object));
    } else if (nb::isinstance<nb::float_>(object)) {
      value->set_double(nb::cast<double>(object));
    } else if (nb::isinstance<nb::str>(object)) {
      set_string(*value, nb::cast<std::string>(object));
    } else if (nb::isinstance<nb::list>(object)) {
      set_list(*value, letter, nb::borrow<nb::list>(object));
    } else {
      set_tensor(*value, object);
    }
    return value;
  }

  void set_string(EValue& value, std::string text) {
    const std::string& kept = strings_.emplace_back(std::move(text));
    value.tag = Tag::String;
    value.list = {kept.data(), static_cast<uint32_t>(kept.size())};
  }

  void set_list(EValue& value, char letter, const nb::list& items) {
    const uint32_t n = static_cast<uint32_t>(items.size());
    if (letter == 'D') {
      std::vector<double>& kept = doubles_.emplace_back();
      for (nb::handle item : items) kept.push_back(nb::cast<double>(item));
      value.tag = Tag::DoubleList;
      value.list = {kept.data(), n};
    } else if (letter == 'B') {
      std::vector<uint8_t>& kept = bytes_.emplace_back();
      for (nb::handle item : items) kept.push_back(nb::cast<bool>(item));
      value.tag = Tag::BoolList;
      value.list = {kept.data(), n};
    } else {
      std::vector<EValue*>& kept = lists_.emplace_back();
      for (nb::handle item : items) kept.push_back(value_of('t', item));
      value.tag = letter == 'T' || letter == 'W' ? Tag::TensorList
                  : letter == 'O'                ? Tag::OptionalTensorList
                                                 : Tag::IntList;
      value.list = {kept.data(), n};
    }
  }

  // An array, or a tuple of an array and its dim order.
  void set_tensor(EValue& value, nb::handle object) {
    OwnedTensor& owned = tensors_.emplace_back();
    std::optional<std::vector<uint8_t>> order;
    if (nb::isinstance<nb::tuple>(object)) {
      const nb::tuple pair = nb::borrow<nb::tuple>(object);
      order = nb::cast<std::vector<uint8_t>>(pair[1]);
      owned.array = nb::cast<nb::ndarray<>>(pair[0]);
    } else {
      owned.array = nb::cast<nb::ndarray<>>(object);
    }
    const size_t rank = owned.array.ndim();
    if (rank > kMaxRank ||
        (order && !(order->size() == rank && is_permutation(order->data(), rank))))
      throw nb::value_error("a tensor has at most 16 dimensions, and its dim order permutes them");
    if (order) {
      std::copy(order->begin(), order->end(), owned.dim_order);
    } else {
      order_by_stride(owned.array, owned.dim_order);
    }
    for (size_t d = 0; d < rank; ++d) owned.sizes[d] = static_cast<int32_t>(owned.array.shape(d));
    Tensor& t = owned.tensor;
    t.data = owned.array.data();
    t.sizes = owned.sizes;
    t.strides = owned.strides;
    t.dim_order = owned.dim_order;
    t.rank = static_cast<uint8_t>(rank);
    t.dtype = dtype_of(owned.array);
    t.dynamism = Dynamism::Bounded;
    t.numel = t.capacity = static_cast<int64_t>(owned.array.size());
    strides_of(t.shape(), t.dim_order, owned.strides);
    check_dense(owned);
    value.tag = Tag::Tensor;
    value.t = &t;
  }

  const Kernel* kernel_ = nullptr;
  std::vector<EValue*> args_;
  size_t n_passed_ = 0;
  std::deque<EValue> values_;
  std::deque<OwnedTensor> tensors_;
  std::deque<std::string> strings_;
  std::deque<std::vector<double>> doubles_;
  std::deque<std::vector<uint8_t>> bytes_;
  std::deque<std::vector<EValue*>> lists_;
  size_t scratch_bytes_;
  std::vector<uint8_t> scratch_;
  PoolWorkers workers_;
  std::optional<Generator> generator_;
};

void use_isa(const std::optional<std::string>& name) {
  if (!name) return;
  kernels::Isa isa;
  if (!kernels::isa_by_name(name->c_str(), &isa) || !kernels::select_isa(isa)) {
    throw nb::value_error("no such instruction set here; kernel_isas() lists those there are");
  }
}

nb::tuple run_kernel(const std::string& name, const nb::list& args,
                     const std::optional<std::string>& isa, size_t scratch, size_t threads,
                     std::optional<uint64_t> seed) {
  use_isa(isa);
  Call call(name, args, scratch, threads, seed);
  call.run();
  return call.results();
}

double time_kernel(const std::string& name, const nb::list& args, size_t repeats,
                   const std::optional<std::string>& isa, size_t scratch, size_t threads) {
  use_isa(isa);
  return Call(name, args, scratch, threads, Generator::kDefaultSeed).seconds_per_call(repeats);
}

std::vector<std::string> kernel_isas() {
  std::vector<std::string> names;
  for (kernels::Isa isa : kernels::kIsas) {
    if (kernels::isa_available(isa)) names.emplace_back(kernels::isa_name(isa));
  }
  return names;
}

nb::dict kernel_signatures() {
  nb::dict signatures;
  const KernelTable& table = portable_table();
  for (size_t i = 0; i < table.size(); ++i) signatures[table[i].name] = table[i].signature;
  return signatures;
}

}  // namespace

void bind_kernels(nb::module_& m) {
  m.def("run_kernel", &run_kernel, nb::arg("name"), nb::arg("args"), nb::arg("isa") = nb::none(),
        nb::arg("scratch") = size_t{1} << 20, nb::arg("threads") = size_t{1},
        nb::arg("seed").none() = Generator::kDefaultSeed,
        "Calls one portable kernel with arguments in schema order, outs included, and returns\n"
        "(scalar result or None, [final sizes of each tensor argument, None for others]).\n\n"
        "A tensor is an array (NumPy, torch, DLPack), dense in any order of its dimensions, or a\n"
        "tuple of an array and its dim order; outs are written in place, and may shrink. `isa`\n"
        "(see kernel_isas) stays chosen; random operators draw from `seed` on. Raises "
        "RuntimeError with the kernel's message.");
  m.def("time_kernel", &time_kernel, nb::arg("name"), nb::arg("args"), nb::arg("repeats"),
        nb::arg("isa") = nb::none(), nb::arg("scratch") = size_t{1} << 20,
        nb::arg("threads") = size_t{1},
        "Seconds per call over `repeats` calls, after one that is not counted.");
  m.def("kernel_isas", &kernel_isas, "The instruction sets that run_kernel can be told to use.");
  m.def("kernel_signatures", &kernel_signatures,
        "Name to signature letters (cpp/kernel/kernel.h) of every portable kernel.");
}

}  // namespace rushlight
