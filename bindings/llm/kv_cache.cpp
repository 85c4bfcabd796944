#include "llm/kv_cache.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <new>
#include <string>

#include "bindings.h"
#include "failure.h"
#include "rushlight/engine/types/kv_page.h"

namespace rushlight::python {

namespace {

constexpr size_t kMost = size_t{1} << 40;  // bytes of a cache

DType dtype_by_name(const std::string& name) {
  for (const DType dtype : {DType::Float32, DType::Float16, DType::Int8}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  fail(Code::InvalidArgument,
       "a key-value cache is of float32, float16 or int8, but " + name + " was asked for");
}

}  // namespace

OwnKvCache::OwnKvCache(const KvLayout& layout, size_t sequences, size_t positions) {
  const size_t page = engine::kv_page_bytes(layout);
  if (page == 0) {
    fail(Code::InvalidArgument,
         "a key-value cache has 1 to 65536 layers and heads, of widths from 1 to " +
             std::to_string(engine::kKvWidth));
  }
  const size_t each = positions / KvLayout::kPageTokens + (positions % KvLayout::kPageTokens > 0);
  if (sequences != 0 && each > kMost / page / sequences) {
    fail(Code::InvalidArgument, "a key-value cache for " + std::to_string(sequences) +
                                    " sequences of " + std::to_string(positions) +
                                    " positions takes more than a tebibyte");
  }
  bytes_ = page * each * sequences;
  memory_.reset(new (std::nothrow) Line[bytes_ / sizeof(Line)]());
  if (memory_ == nullptr) {
    fail(Code::MemoryAllocationFailed,
         "the system has no " + std::to_string(bytes_) + " bytes for a key-value cache");
  }
  auto* const start = reinterpret_cast<uint8_t*>(memory_.get());
  for (size_t i = 0; i < each * sequences; ++i) pages_.push_back(start + i * page);
  for (size_t i = 0; i < sequences; ++i) sequences_.push_back({pages_.data() + i * each, each});
  cache_.layout = layout;
  cache_.sequences = {sequences_.data(), sequences_.size()};
}

void init_kv_cache(nb::module_& m) {
  nb::class_<OwnKvCache>(m, "KvCache")
      .def(
          "__init__",
          [](OwnKvCache* self, const std::string& dtype, uint32_t layers, uint32_t heads,
             uint32_t width, uint32_t value_width, size_t sequences, size_t positions) {
            const KvLayout layout = {dtype_by_name(dtype), layers, heads, width, value_width};
            new (self) OwnKvCache(layout, sequences, positions);
          },
          nb::arg("dtype"), nb::arg("layers"), nb::arg("heads"), nb::arg("width"),
          nb::arg("value_width"), nb::arg("sequences"), nb::arg("positions"))
      .def_prop_ro("nbytes", &OwnKvCache::bytes);
}

}  // namespace rushlight::python
