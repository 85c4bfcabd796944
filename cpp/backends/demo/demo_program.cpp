#include "rushlight/backends/demo/demo_program.h"

#include <cstdint>
#include <cstring>

#include "rushlight/core/tensor.h"

namespace rushlight::demo {
namespace {

struct OpName {
  const char* name;
  Op op;
  uint32_t least, most;  // operands
};
constexpr OpName kOps[] = {
    {"sin", Op::Sin, 1, 1}, {"add", Op::Add, 2, 2},       {"mul", Op::Mul, 2, 2},
    {"mm", Op::Mm, 2, 2},   {"linear", Op::Linear, 2, 3},
};
constexpr size_t kMaxLines = 1 << 20;

// The words of one line, one after the other.
class Words {
 public:
  explicit Words(StringView line) : line_(line) {}

  StringView next() {
    while (at_ < line_.size() && line_.data()[at_] == ' ') ++at_;
    const size_t begin = at_;
    while (at_ < line_.size() && line_.data()[at_] != ' ') ++at_;
    return {line_.data() + begin, at_ - begin};
  }

 private:
  StringView line_;
  size_t at_ = 0;
};

// A number that fits 31 bits; -1 if the word is not one.
int64_t number(StringView word) {
  int64_t value = 0;
  if (word.empty() || word.size() > 10) return -1;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word.data()[i];
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value <= INT32_MAX ? value : -1;
}

int64_t value_number(StringView word) {
  if (word.empty() || word.data()[0] != '%') return -1;
  return number({word.data() + 1, word.size() - 1});
}

class Parser {
 public:
  Parser(BackendInit& init, Program* program)
      : init_(init),
        text_(reinterpret_cast<const char*>(init.payload.data()), init.payload.size()),
        program_(*program) {}

  Status run() {
    if (next_line() != "demo 1") return fail("it is not of version 1 (\"demo 1\")");
    size_t lines = 0;
    for (size_t i = 0; i < text_.size(); ++i) lines += text_.data()[i] == '\n' ? 1 : 0;
    if (lines == 0 || lines > kMaxLines || text_.data()[text_.size() - 1] != '\n') {
      return fail("the text is cut");
    }
    RL_TRY(header());
    const size_t values = program_.n_inputs + lines;  // each line makes one at most
    program_.values = init_.allocator->allocate_array<Value>(values);
    program_.instructions = init_.allocator->allocate_array<Instruction>(lines);
    program_.outputs = init_.allocator->allocate_array<uint32_t>(lines);
    if (!program_.values || !program_.instructions || !program_.outputs) return no_memory();
    for (size_t i = 0; i < values; ++i) program_.values[i] = Value();
    program_.n_values = program_.n_inputs;
    while (at_ < text_.size()) RL_TRY(line());
    return program_.n_outputs > 0 ? Status() : fail("it has no output");
  }

 private:
  Status fail(const char* what) {
    return init_.message->fail(Code::DelegateInvalidCompatibility,
                               "line %zu of the payload: %s; export the program again", line_,
                               what);
  }
  Status no_memory() {
    return init_.message->fail(Code::DelegateMemoryAllocationFailed,
                               "the method's memory has no room for the delegate's values");
  }

  StringView next_line() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_.data()[at_] != '\n') ++at_;
    ++line_;
    return {text_.data() + begin, at_++ - begin};
  }

  Status header() {
    Words words(next_line());
    const StringView keyword = words.next();
    const int64_t count = number(words.next());
    if (keyword != "in" || count < 0 || count > INT16_MAX) return fail("\"in N\" is missing");
    RL_TRY(end(words));
    program_.n_inputs = static_cast<size_t>(count);
    return {};
  }

  Status line() {
    Words words(next_line());
    const StringView first = words.next();
    if (first == "out") return output(words);
    if (first == "data") return data(words);
    const Status status = instruction(first, words);
    if (!status.ok()) init_.place->set(static_cast<int64_t>(program_.n_instructions));
    return status;
  }

  Status end(Words& words) {
    return words.next().empty() ? Status() : fail("there is more than belongs there");
  }

  Status output(Words& words) {
    const int64_t value = value_number(words.next());
    if (!exists(value)) return fail("the output is a value that is not there");
    program_.outputs[program_.n_outputs++] = static_cast<uint32_t>(value);
    return end(words);
  }

  bool exists(int64_t value) const {
    return value >= 0 && static_cast<size_t>(value) < program_.n_values;
  }

  bool is_next(int64_t value) const { return static_cast<uint64_t>(value) == program_.n_values; }

  Status data(Words& words) {
    if (!is_next(value_number(words.next()))) return fail("values must be counted in order");
    const StringView key = words.next();
    Value& value = program_.values[program_.n_values];
    for (StringView word = words.next(); !word.empty(); word = words.next()) {
      const int64_t size = number(word);
      if (size < 0 || value.rank == kMaxDims)
        return fail("a size is not a number, or one too many");
      value.sizes[value.rank++] = static_cast<int32_t>(size);
    }
    const Result<Span<const uint8_t>> stored = init_.named_data->get(key);
    if (!stored.ok()) return fail("its named data is not in the program");
    const Span<const uint8_t> bytes = stored.value();
    const bool counted = count_elements({value.sizes, value.rank}, &value.numel);
    if (!counted || bytes.size() / sizeof(float) != static_cast<uint64_t>(value.numel) ||
        bytes.size() % sizeof(float) != 0) {
      return fail("its named data has another size");
    }
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0) {
      return fail("its named data is not aligned");
    }
    value.data = reinterpret_cast<const float*>(bytes.data());
    ++program_.n_values;
    return {};
  }

  Status instruction(StringView result, Words& words) {
    if (!is_next(value_number(result))) return fail("values must be counted in order");
    Instruction& made = program_.instructions[program_.n_instructions];
    made = Instruction();
    if (words.next() != "=") return fail("\"=\" is missing");
    const StringView name = words.next();
    const OpName* entry = nullptr;
    for (const OpName& op : kOps) {
      if (name == StringView(op.name)) entry = &op;
    }
    if (entry == nullptr) return fail("there is no such instruction");
    StringView word = words.next();
    for (; value_number(word) >= 0; word = words.next()) {
      if (made.n_operands == entry->most) return fail("it has too many operands");
      if (!exists(value_number(word))) return fail("an operand is not there yet");
      made.operands[made.n_operands++] = static_cast<uint32_t>(value_number(word));
    }
    if (made.n_operands < entry->least || word != ":") return fail("an operand is missing");
    made.capacity = number(words.next());
    if (made.capacity < 0) return fail("its number of elements is missing");
    RL_TRY(end(words));
    made.op = entry->op;
    made.result = static_cast<uint32_t>(program_.n_values++);
    made.memory = init_.allocator->allocate_array<float>(static_cast<size_t>(made.capacity));
    if (made.memory == nullptr) return no_memory();
    ++program_.n_instructions;
    return {};
  }

  BackendInit& init_;
  StringView text_;
  Program& program_;
  size_t at_ = 0;
  size_t line_ = 0;
};

}  // namespace

Status parse(BackendInit& init, Program* program) { return Parser(init, program).run(); }

}  // namespace rushlight::demo
