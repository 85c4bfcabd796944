// Tile programs: random programs over random spaces, compared with an interpreter of one element;
// division into blocks; and programs that are refused.
#include <algorithm>

#include "cpu_kernels.h"
#include "tile_reference.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

using Program = std::vector<TileInstruction>;

// --- programs -----------------------------------------------------------------------------------

// Operators whose float results are the rounded double results, so that programs of them are exact.
const TileOp kExact[] = {
    TileOp::ADD,       TileOp::SUB,        TileOp::MUL,           TileOp::DIV,
    TileOp::MIN,       TileOp::MAX,        TileOp::EQUAL,         TileOp::NOT_EQUAL,
    TileOp::LESS,      TileOp::LESS_EQUAL, TileOp::GREATER_EQUAL, TileOp::AND,
    TileOp::OR,        TileOp::NOT,        TileOp::WHERE,         TileOp::NEG,
    TileOp::ABS,       TileOp::SQUARE,     TileOp::SQRT,          TileOp::RELU,
    TileOp::FLOOR,     TileOp::CEIL,       TileOp::TRUNC,         TileOp::ROUND,
    TileOp::SIGN,      TileOp::ADD_VALUE,  TileOp::MUL_VALUE,     TileOp::MIN_VALUE,
    TileOp::MAX_VALUE, TileOp::CONSTANT,   TileOp::LOAD,          TileOp::STORE,
    TileOp::LOAD,      TileOp::RECIPROCAL};

struct Space {
  int64_t sizes[kTileRank];
  size_t inputs, outputs;
  TileOperand operands[kTileOperands];  // without data
  int64_t spans[kTileOperands];
  std::vector<float> floats[kTileOperands];
  std::vector<uint8_t> bools[kTileOperands];
  bool in_place;  // the first output is the first input
};

int64_t offset_of(const TileOperand& operand, const int64_t* index) {
  int64_t at = 0;
  for (size_t d = 0; d < kTileRank; ++d) at += index[d] * operand.strides[d];
  return at;
}

// Strides for a random order of the dimensions, with gaps. Those of inputs are sometimes 0.
void random_strides(Random& random, Space* space, size_t i) {
  TileOperand& operand = space->operands[i];
  size_t order[kTileRank] = {3, 2, 1, 0};
  if (random.chance(4)) std::swap(order[random.whole(0, 3)], order[random.whole(0, 3)]);
  int64_t stride = random.chance(9) ? 2 : 1;
  for (size_t d : order) {
    operand.strides[d] = stride;
    if (i < space->inputs && random.chance(5)) {
      operand.strides[d] = 0;
    } else {
      stride *= space->sizes[d] + (random.chance(9) ? 3 : 0);
    }
  }
  space->spans[i] = stride;
}

Space random_space(Random& random) {
  Space space;
  const int64_t columns[] = {1, 3, 7, 16, 32, 33, 100, 256, 480, 512, 768, 1000};
  space.sizes[0] = random.whole(1, 3);
  space.sizes[1] = random.whole(1, 4);
  space.sizes[2] = random.chance(30) ? 0 : random.whole(1, 40);
  space.sizes[3] = columns[random.whole(0, 11)];
  space.inputs = static_cast<size_t>(random.whole(1, 4));
  space.outputs = static_cast<size_t>(random.whole(1, 3));
  for (size_t i = 0; i < space.inputs + space.outputs; ++i) {
    random_strides(random, &space, i);
    const bool is_bool = random.chance(5);
    space.operands[i].dtype = is_bool ? DType::Bool : DType::Float32;
    if (is_bool) {
      for (int64_t k = 0; k < space.spans[i]; ++k) {
        space.bools[i].push_back(static_cast<uint8_t>(random.whole(0, 1)));
      }
    } else {
      space.floats[i] = sample(random, space.spans[i]);
    }
  }
  space.in_place = random.chance(3);
  if (space.in_place) {
    // Written in place: all elements are separate, and floats.
    const size_t out = space.inputs;
    space.operands[0] = space.operands[out];
    space.spans[0] = space.spans[out];
    space.floats[0] = space.floats[out];
    space.bools[0] = space.bools[out];
  }
  return space;
}

Program random_program(Random& random, const Space& space) {
  Program program;
  std::vector<uint8_t> written;
  const auto add_load = [&] {
    const uint8_t reg = static_cast<uint8_t>(random.whole(0, kTileRegisters - 1));
    const auto from = random.whole(0, static_cast<int64_t>(space.inputs) - 1);
    program.push_back({TileOp::LOAD, reg, static_cast<uint8_t>(from), 0, 0, 0});
    written.push_back(reg);
  };
  const auto some = [&] {
    return written[random.whole(0, static_cast<int64_t>(written.size()) - 1)];
  };
  const auto add_store = [&](size_t output) {
    program.push_back(
        {TileOp::STORE, static_cast<uint8_t>(space.inputs + output), some(), 0, 0, 0});
  };
  add_load();
  const int64_t length = random.whole(1, 14);
  for (int64_t i = 0; i < length; ++i) {
    const TileOp op = kExact[random.whole(0, std::size(kExact) - 1)];
    if (op == TileOp::LOAD) {
      add_load();
    } else if (op == TileOp::STORE) {
      add_store(static_cast<size_t>(random.whole(0, static_cast<int64_t>(space.outputs) - 1)));
    } else {
      const uint8_t reg = static_cast<uint8_t>(random.whole(0, kTileRegisters - 1));
      const uint8_t last = random.chance(2) ? program.back().out % kTileRegisters : some();
      const bool usable = std::find(written.begin(), written.end(), last) != written.end();
      program.push_back({op, reg, usable ? last : some(), some(), some(), random.real(-2, 2)});
      written.push_back(reg);
      if (random.chance(5)) {  // stored immediately, as compilers do
        program.push_back({TileOp::STORE, static_cast<uint8_t>(space.inputs), reg, 0, 0, 0});
      }
    }
  }
  for (size_t output = 0; output < space.outputs; ++output) add_store(output);
  return program;
}

using Memory = std::vector<std::vector<unsigned char>>;

Memory memory_of(const Space& space) {
  Memory memory;
  for (size_t i = 0; i < space.inputs + space.outputs; ++i) {
    const bool is_bool = space.operands[i].dtype == DType::Bool;
    const auto* bytes = reinterpret_cast<const unsigned char*>(
        is_bool ? static_cast<const void*>(space.bools[i].data()) : space.floats[i].data());
    const size_t size = is_bool ? space.bools[i].size() : space.floats[i].size() * 4;
    memory.emplace_back(bytes, bytes + size);
    memory.back().resize(size + 64, 0xa5);  // a guard
  }
  return memory;
}

void bind(const Space& space, Memory* memory, TileOperand* operands) {
  for (size_t i = 0; i < space.inputs + space.outputs; ++i) {
    operands[i] = space.operands[i];
    operands[i].data = (*memory)[i].data();
  }
  if (space.in_place) operands[0].data = operands[space.inputs].data;
}

// Which of 0 and -0 is less is not specified, and processors differ.
bool is_either(TileOp op, float a, float b) {
  const bool zeros = a == 0 && b == 0 && std::signbit(a) != std::signbit(b);
  return zeros && (op == TileOp::MIN || op == TileOp::MAX);
}

// False if two results are allowed.
bool run_element(const Program& program, const TileOperand* operands, const int64_t* index) {
  float registers[kTileRegisters] = {};
  for (const TileInstruction& instruction : program) {
    const bool load = instruction.op == TileOp::LOAD;
    const TileOperand& operand = operands[load ? instruction.a : instruction.out];
    if (load || instruction.op == TileOp::STORE) {
      const int64_t at = offset_of(operand, index);
      float& reg = registers[load ? instruction.out : instruction.a];
      float* const real = static_cast<float*>(operand.data) + at;
      uint8_t* const flag = static_cast<uint8_t*>(operand.data) + at;
      const bool is_bool = operand.dtype == DType::Bool;
      if (load) reg = is_bool ? static_cast<float>(*flag) : *real;
      if (!load && is_bool) *flag = reg != 0;
      if (!load && !is_bool) *real = reg;
    } else if (instruction.op == TileOp::CONSTANT) {
      registers[instruction.out] = instruction.value;
    } else {
      if (is_either(instruction.op, registers[instruction.a], registers[instruction.b]))
        return false;
      registers[instruction.out] =
          static_cast<float>(apply(instruction, static_cast<double>(registers[instruction.a]),
                                   static_cast<double>(registers[instruction.b]),
                                   static_cast<double>(registers[instruction.c])));
    }
  }
  return true;
}

// Floats must be equal, where any NaN equals any other; other memory must have equal bytes.
bool same(const Space& space, const Memory& memory, const Memory& expected) {
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == expected[i]) continue;
    if (space.operands[i].dtype == DType::Bool) return false;
    for (size_t k = 0; k < memory[i].size(); k += 4) {
      float a, b;
      std::memcpy(&a, memory[i].data() + k, 4);
      std::memcpy(&b, expected[i].data() + k, 4);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      std::fprintf(stderr, "operand %zu, element %zu: %.9g, not %.9g\n", i, k / 4,
                   static_cast<double>(a), static_cast<double>(b));
      return false;
    }
  }
  return true;
}

// False if the program has more than one valid result; then it is not run.
bool check_program(const Space& space, const Program& program) {
  const size_t n = space.inputs + space.outputs;
  TileOperand operands[kTileOperands];
  CHECK(tile_program_valid({program.data(), program.size()}, n));
  Memory expected = memory_of(space);
  bind(space, &expected, operands);
  int64_t index[kTileRank];
  for (index[0] = 0; index[0] < space.sizes[0]; ++index[0]) {
    for (index[1] = 0; index[1] < space.sizes[1]; ++index[1]) {
      for (index[2] = 0; index[2] < space.sizes[2]; ++index[2]) {
        for (index[3] = 0; index[3] < space.sizes[3]; ++index[3]) {
          if (!run_element(program, operands, index)) return false;
        }
      }
    }
  }
  Memory alone;
  everywhere<char>(
      0,
      [&](char*, Workers* workers) {
        Memory memory = memory_of(space);
        bind(space, &memory, operands);
        TileRun run{{program.data(), program.size()}, operands, {}};
        std::copy(space.sizes, space.sizes + kTileRank, run.sizes);
        run_tiles(run, workers);
        if (workers == nullptr) alone = memory;
        CHECK(memory == alone);
      },
      [&](const char*) { CHECK(same(space, alone, expected)); });
  return true;
}

void test_programs() {
  Random random(2);
  int compared = 0;
  for (int round = 0; round < 400; ++round) {
    const Space space = random_space(random);
    compared += check_program(space, random_program(random, space));
  }
  CHECK(compared > 300);
}

// --- cuts ---------------------------------------------------------------------------------------

// Blocks give the same bits as the whole space, for any division.
void test_blocks() {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const int64_t rows = random.whole(1, 40);
    const int64_t columns = random.whole(1, 700);
    const int64_t stride = columns + random.whole(0, 1) * 5;
    const std::vector<float> in = random.reals(rows * stride);
    const std::vector<float> bias = random.reals(columns);
    const TileOp ops[] = {TileOp::GELU, TileOp::GELU_TANH, TileOp::SILU, TileOp::SIN, TileOp::POW};
    const TileInstruction program[] = {{TileOp::LOAD, 0, 0, 0, 0, 0},
                                       {TileOp::LOAD, 1, 1, 0, 0, 0},
                                       {TileOp::MUL_ADD, 0, 0, 1, 1, 0},
                                       {ops[random.whole(0, 4)], 2, 0, 1, 0, 0},
                                       {TileOp::STORE, 2, 2, 0, 0, 0}};
    const auto make = [&](float* out, TileOperand* operands) {
      operands[0].data = const_cast<float*>(in.data());
      operands[1].data = const_cast<float*>(bias.data());
      operands[2].data = out;
      for (size_t i = 0; i < 3; ++i) {
        operands[i].strides[2] = i == 1 ? 0 : stride;
        operands[i].strides[3] = 1;
      }
      return TileRun{program, operands, {1, 1, rows, columns}};
    };
    const int64_t high = random.whole(1, rows);
    const int64_t wide = random.whole(1, columns);
    Guarded<float> whole(rows * stride);
    TileOperand operands[3];
    everywhere<float>(
        rows * stride,
        [&](float* out, Workers* workers) {
          whole.reset();
          run_tiles(make(whole.data(), operands), workers);
          const TileRun run = make(out, operands);
          for (int64_t r = 0; r < rows; r += high) {
            for (int64_t c = 0; c < columns; c += wide) {
              run_tile_block(run, r, std::min(high, rows - r), c, std::min(wide, columns - c));
            }
          }
        },
        [&](const float* out) {
          CHECK(std::memcmp(out, whole.data(), static_cast<size_t>(rows * stride) * 4) == 0);
        });
  }
}

// --- what is refused ----------------------------------------------------------------------------

// A second implementation of the header's rules for valid programs.
bool sound(const Program& program, size_t operands) {
  bool written[256] = {};
  for (const TileInstruction& i : program) {
    const size_t op = static_cast<size_t>(i.op);
    if (op >= kTileOps) return false;
    const bool load = i.op == TileOp::LOAD;
    const bool store = i.op == TileOp::STORE;
    if (load && i.a >= operands) return false;
    if (store && (i.out >= operands || i.a >= kTileRegisters || !written[i.a])) return false;
    if (!store && i.out >= kTileRegisters) return false;
    const bool two = i.op >= TileOp::ADD && i.op <= TileOp::OR;
    const bool three = i.op == TileOp::MUL_ADD || i.op == TileOp::WHERE;
    if (i.op >= TileOp::ADD) {
      if (i.a >= kTileRegisters || i.b >= kTileRegisters || i.c >= kTileRegisters) return false;
      if (!written[i.a] || ((two || three) && !written[i.b]) || (three && !written[i.c])) {
        return false;
      }
    }
    if (!store) written[i.out] = true;
  }
  return true;
}

// Operands that are read in place are not read beyond their memory, for any division of the rows.
void test_nothing_behind_an_operand_is_read() {
  Random random(5);
  const TileInstruction program[] = {{TileOp::LOAD, 0, 0, 0, 0, 0}, {TileOp::STORE, 1, 0, 0, 0, 0}};
  for (const int64_t columns : {1, 3, 17, 33}) {
    const int64_t rows = 16;
    std::vector<float> in = random.reals(rows * columns);  // a heap block of exactly this size
    everywhere<float>(
        rows * (columns + 2),
        [&](float* out, Workers* workers) {
          TileOperand operands[2];
          operands[0] = {in.data(), DType::Float32, {0, 0, columns, 1}};
          operands[1] = {out, DType::Float32, {0, 0, columns + 2, 1}};
          run_tiles({program, operands, {1, 1, rows, columns}}, workers);
        },
        [&](const float* out) {
          for (int64_t i = 0; i < rows * columns; ++i) {
            CHECK(out[i / columns * (columns + 2) + i % columns] == in[static_cast<size_t>(i)]);
          }
        });
  }
}

void test_refusals() {
  Random random(4);
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    const bool bytes = random.chance(3);
    Program program(static_cast<size_t>(random.whole(0, 6)));
    for (TileInstruction& i : program) {
      const int64_t most = bytes ? 255 : 9;
      const int64_t ops = random.chance(3) ? 2 : static_cast<int64_t>(kTileOps);
      i.op = static_cast<TileOp>(random.whole(0, bytes ? 255 : ops));
      i.out = static_cast<uint8_t>(random.whole(0, most) / (bytes ? 1 : 2));
      i.a = static_cast<uint8_t>(random.whole(0, most) / (bytes ? 1 : 2));
      i.b = static_cast<uint8_t>(random.whole(0, most) / (bytes ? 1 : 2));
      i.c = static_cast<uint8_t>(random.whole(0, most));
      i.value = random.real(-1, 1);
    }
    const size_t operands = static_cast<size_t>(random.whole(0, 4));
    const bool valid = tile_program_valid({program.data(), program.size()}, operands);
    CHECK(valid == sound(program, operands));
    accepted += valid && !program.empty();
  }
  CHECK(accepted > 100);
  const Program longest(kTileInstructions, {TileOp::CONSTANT, 0, 0, 0, 0, 0});
  CHECK(tile_program_valid({longest.data(), longest.size()}, 1));
  const Program longer(kTileInstructions + 1, {TileOp::CONSTANT, 0, 0, 0, 0, 0});
  CHECK(!tile_program_valid({longer.data(), longer.size()}, 1));
  CHECK(!tile_program_valid({longest.data(), 1}, kTileOperands + 1));
}

}  // namespace

int main() {
  test_programs();
  test_blocks();
  test_nothing_behind_an_operand_is_read();
  test_refusals();
  return check_result();
}
