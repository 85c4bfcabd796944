// `_core.Tokenizer` and `_core.TextStream`: tokenizers, as src/rushlight/llm/tokenizer uses them.
#include "rushlight/llm/tokenizer/tokenizer.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "failure.h"
#include "gil.h"
#include "rushlight/llm/tokenizer/stream.h"

namespace rushlight::python {
namespace {

StringView view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
nb::bytes to_bytes(StringView text) { return nb::bytes(text.data(), text.size()); }

// A tokenizer with a copy of its table, which is thus aligned as it must be.
class OwningTokenizer {
 public:
  explicit OwningTokenizer(const nb::bytes& table) : table_(table.size() / 8 + 1) {
    std::memcpy(table_.data(), table.c_str(), table.size());
    Message message;
    auto opened = llm::Tokenizer::open(
        {reinterpret_cast<const uint8_t*>(table_.data()), table.size()}, &message);
    if (!opened.ok()) fail(opened.status().code(), message);
    tokenizer_ = opened.value();
  }
  const llm::Tokenizer& operator*() const { return tokenizer_; }
  const llm::Tokenizer* operator->() const { return &tokenizer_; }

 private:
  std::vector<uint64_t> table_;
  llm::Tokenizer tokenizer_;
};

std::vector<int32_t> encode(const OwningTokenizer& self, const nb::bytes& text, bool add_special,
                            bool parse_special) {
  std::vector<int32_t> tokens;
  Message message;
  Status status;
  {
    const GilRelease release;
    status = self->encode(view(text), add_special, parse_special, &tokens, &message);
  }
  if (!status.ok()) fail(status.code(), message);
  return tokens;
}

// Numbers that no token can have are left out with those that the vocabulary has not.
int32_t token_of(int64_t number) {
  return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number);
}

nb::bytes decode(const OwningTokenizer& self, const std::vector<int64_t>& numbers,
                 bool skip_special) {
  std::vector<int32_t> tokens;
  for (const int64_t number : numbers) tokens.push_back(token_of(number));
  const std::string text = self->decode({tokens.data(), tokens.size()}, skip_special);
  return nb::bytes(text.data(), text.size());
}

}  // namespace

void init_tokenizer(nb::module_& m) {
  nb::class_<OwningTokenizer>(m, "Tokenizer")
      .def(nb::init<const nb::bytes&>(), nb::arg("table"))
      .def("encode", &encode, nb::arg("text"), nb::arg("add_special"), nb::arg("parse_special"))
      .def("decode", &decode, nb::arg("tokens"), nb::arg("skip_special"))
      .def("piece", [](const OwningTokenizer& self,
                       int64_t token) { return to_bytes(self->piece(token_of(token))); })
      .def("special", [](const OwningTokenizer& self,
                         const nb::bytes& text) { return self->special(view(text)); })
      .def("is_special", [](const OwningTokenizer& self,
                            int64_t token) { return self->is_special(token_of(token)); })
      .def("vocabulary", [](const OwningTokenizer& self) { return self->vocabulary(); });
  nb::class_<llm::TextStream>(m, "TextStream")
      .def(
          "__init__",
          [](llm::TextStream* self, const OwningTokenizer& tokenizer, bool skip_special) {
            new (self) llm::TextStream(*tokenizer, skip_special);
          },
          nb::keep_alive<1, 2>(), nb::arg("tokenizer"), nb::arg("skip_special"))
      .def("push", [](llm::TextStream& self,
                      int64_t token) { return to_bytes(self.push(token_of(token))); })
      .def("flush", [](llm::TextStream& self) { return to_bytes(self.flush()); });
}

}  // namespace rushlight::python
