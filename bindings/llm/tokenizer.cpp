// `_core.Tokenizer` and `_core.TextStream`: tokenizers, as src/rushlight/llm/tokenizer uses them.
#include "rushlight/llm/tokenizer/tokenizer.h"

#include <nanobind/nanobind.h>

#include <algorithm>
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

// Python's numbers for tokens, which lists of tokens share: making and freeing one for each token
// takes longer than finding it. At most 36 bytes for each of kMost numbers, kept by the process.
class TokenNumbers {
 public:
  // The number as an object of the caller's.
  PyObject* get(int32_t token) {
    const auto i = static_cast<size_t>(token);
    if (token < 0 || i >= kMost) return PyLong_FromLong(token);
    if (i >= numbers_.size()) numbers_.resize(std::min(kMost, 2 * i + 1024));
    PyObject*& number = numbers_[i];
    if (number == nullptr) number = PyLong_FromLong(token);
    Py_XINCREF(number);
    return number;
  }

 private:
  static constexpr size_t kMost = size_t{1} << 18;

  std::vector<PyObject*> numbers_;
};

nb::object to_list(const std::vector<int32_t>& tokens) {
  static TokenNumbers numbers;  // of the one who has the interpreter's lock
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(tokens.size())));
  if (!list.is_valid()) nb::raise_python_error();
  for (size_t i = 0; i < tokens.size(); ++i) {
    PyObject* number = numbers.get(tokens[i]);
    if (number == nullptr) nb::raise_python_error();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), number);
  }
  return list;
}

// The UTF-8 of a text, which the text keeps; of one with surrogates, theirs in `*own`, which is not
// valid.
StringView utf8_of(const nb::str& text, nb::bytes* own, bool* is_utf8) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  *is_utf8 = data != nullptr;
  if (data != nullptr) return {data, static_cast<size_t>(size)};
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  *own = nb::steal<nb::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!own->is_valid()) nb::raise_python_error();
  return view(*own);
}

nb::object encode_view(const OwningTokenizer& self, StringView text, bool is_utf8, bool add_special,
                       bool parse_special) {
  std::vector<int32_t> tokens;
  Message message;
  Status status;
  {
    const GilRelease release;
    const auto encode = is_utf8 ? &llm::Tokenizer::encode_utf8 : &llm::Tokenizer::encode;
    status = ((*self).*encode)(text, add_special, parse_special, &tokens, &message);
  }
  if (!status.ok()) fail(status.code(), message);
  return to_list(tokens);
}

nb::object encode(const OwningTokenizer& self, const nb::str& text, bool add_special,
                  bool parse_special) {
  nb::bytes own;
  bool is_utf8 = false;
  const StringView bytes = utf8_of(text, &own, &is_utf8);
  return encode_view(self, bytes, is_utf8, add_special, parse_special);
}

nb::object encode_bytes(const OwningTokenizer& self, const nb::bytes& text, bool add_special,
                        bool parse_special) {
  return encode_view(self, view(text), false, add_special, parse_special);
}

// Numbers that no token can have are left out with those that the vocabulary has not.
int32_t token_of(int64_t number) {
  return number < 0 || number > INT32_MAX ? -1 : static_cast<int32_t>(number);
}

nb::str decode(const OwningTokenizer& self, const nb::list& numbers, bool skip_special) {
  std::vector<int32_t> tokens;
  tokens.reserve(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    int overflow = 0;
    const nb::object number = numbers[i];
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
    tokens.push_back(overflow != 0 ? -1 : token_of(value));
  }
  const std::string text = self->decode({tokens.data(), tokens.size()}, skip_special);
  return nb::str(text.data(), text.size());
}

}  // namespace

void init_tokenizer(nb::module_& m) {
  nb::class_<OwningTokenizer>(m, "Tokenizer")
      .def(nb::init<const nb::bytes&>(), nb::arg("table"))
      .def("encode", &encode, nb::arg("text"), nb::arg("add_special"), nb::arg("parse_special"))
      .def("encode_bytes", &encode_bytes, nb::arg("text"), nb::arg("add_special"),
           nb::arg("parse_special"))
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
