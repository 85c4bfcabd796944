// The interpreter of tile programs. Its loop over instructions runs once for up to kTileFloats
// elements; where the innermost dimension is short, a tile takes several rows of the next one.
#include "rushlight/engine/kernels/rows/tile.h"

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/loops/rows/tile.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrainTiles = 16;
// From this many columns on, a tile has a single row, which needs no copy into registers.
constexpr int64_t kLongRow = kTileFloats / 2;

struct Reads {
  uint8_t registers[3];
  size_t count;
};

Reads reads_of(const TileInstruction& instruction) {
  const TileOp op = instruction.op;
  size_t count = 1;
  if (op == TileOp::LOAD || op == TileOp::CONSTANT) count = 0;
  if (op >= TileOp::ADD && op <= TileOp::OR) count = 2;
  if (op == TileOp::MUL_ADD || op == TileOp::WHERE) count = 3;
  return {{instruction.a, instruction.b, instruction.c}, count};
}

bool reads(const TileInstruction& instruction, uint8_t reg) {
  const Reads read = reads_of(instruction);
  for (size_t i = 0; i < read.count; ++i) {
    if (read.registers[i] == reg) return true;
  }
  return false;
}

// A space as the interpreter walks it: dimensions that are dense neighbours in every operand are
// merged.
struct Space {
  int64_t sizes[kTileRank];
  int64_t strides[kTileOperands][kTileRank];
  char* data[kTileOperands];
  bool is_bool[kTileOperands];
  size_t operands;
  int64_t tile_rows, tile_columns;
  int64_t row_tiles, column_tiles;
  // For each instruction: whether the register may be the operand's memory itself, if that is dense
  // in a tile.
  bool direct[kTileInstructions];
};

int64_t element_bytes(const Space& space, size_t operand) {
  return space.is_bool[operand] ? 1 : static_cast<int64_t>(sizeof(float));
}

// Whether a register is read after a store that follows the instruction at `from`: the store may
// overwrite the memory that the register was loaded from (operators may work in place).
bool outlives_store(Span<const TileInstruction> program, uint8_t reg, size_t from) {
  bool stored = false;
  for (size_t i = from + 1; i < program.size(); ++i) {
    if (stored && reads(program[i], reg)) return true;
    if (program[i].op == TileOp::STORE) {
      stored = true;
    } else if (program[i].out == reg) {
      return false;
    }
  }
  return false;
}

void find_direct(Span<const TileInstruction> program, Space* space) {
  for (size_t i = 0; i < program.size(); ++i) {
    space->direct[i] = false;
    const bool stored_next = i + 1 < program.size() && program[i + 1].op == TileOp::STORE &&
                             program[i + 1].a == program[i].out;
    if (program[i].op == TileOp::LOAD)
      space->direct[i] = !outlives_store(program, program[i].out, i);
    if (program[i].op >= TileOp::ADD) {
      space->direct[i] = stored_next && !outlives_store(program, program[i].out, i + 1);
    }
  }
}

// Whether dimensions d and d + 1 are dense neighbours in every operand.
bool behind(const Space& space, size_t d) {
  for (size_t i = 0; i < space.operands; ++i) {
    if (space.strides[i][d] != space.strides[i][d + 1] * space.sizes[d + 1]) return false;
  }
  return true;
}

void move_dimension(Space* space, size_t from, size_t to) {
  space->sizes[to] = space->sizes[from];
  for (size_t i = 0; i < space->operands; ++i) space->strides[i][to] = space->strides[i][from];
}

// Merges the dimensions that can be merged; the remaining ones become the last ones.
void join_dimensions(Space* space) {
  size_t at = kTileRank;  // the outermost dimension that is kept
  for (size_t d = kTileRank; d-- > 0;) {
    if (space->sizes[d] == 1) continue;
    move_dimension(space, d, --at);
    if (at + 1 == kTileRank || !behind(*space, at)) continue;
    space->sizes[at + 1] *= space->sizes[at];
    ++at;
  }
  while (at-- > 0) {
    space->sizes[at] = 1;
    for (size_t i = 0; i < space->operands; ++i) space->strides[i][at] = 0;
  }
}

void choose_tiles(Space* space) {
  const int64_t rows = space->sizes[kTileRank - 2];
  const int64_t columns = space->sizes[kTileRank - 1];
  space->column_tiles = (columns + kTileFloats - 1) / kTileFloats;
  const int64_t even = (columns + space->column_tiles - 1) / space->column_tiles;
  const int64_t padded = (even + kTilePad - 1) / kTilePad * kTilePad;
  space->tile_columns = padded < columns ? padded : columns;
  space->tile_rows = columns >= kLongRow ? 1 : kTileFloats / columns;
  if (space->tile_rows > rows) space->tile_rows = rows;
  space->row_tiles = (rows + space->tile_rows - 1) / space->tile_rows;
}

// False if there is nothing to do.
bool prepare(const TileRun& run, const int64_t* sizes, const int64_t* starts, Space* space) {
  space->operands = 0;
  for (const TileInstruction& instruction : run.program) {
    if (instruction.op != TileOp::LOAD && instruction.op != TileOp::STORE) continue;
    const size_t operand = instruction.op == TileOp::LOAD ? instruction.a : instruction.out;
    if (operand >= space->operands) space->operands = operand + 1;
  }
  for (size_t d = 0; d < kTileRank; ++d) {
    if (sizes[d] <= 0) return false;
    space->sizes[d] = sizes[d];
  }
  for (size_t i = 0; i < space->operands; ++i) {
    const TileOperand& operand = run.operands[i];
    space->is_bool[i] = operand.dtype == DType::Bool;
    int64_t at = 0;
    for (size_t d = 0; d < kTileRank; ++d) {
      space->strides[i][d] = operand.strides[d];
      at += starts[d] * operand.strides[d];
    }
    space->data[i] = static_cast<char*>(operand.data) + at * element_bytes(*space, i);
  }
  join_dimensions(space);
  choose_tiles(space);
  find_direct(run.program, space);
  return true;
}

// One tile and its registers; each is memory of its own, or an operand's.
struct Tile {
  const Space& space;
  int64_t index[kTileRank];
  int64_t rows, columns, padded;
  float (&memory)[kTileRegisters][kRegisterFloats];
  const float* registers[kTileRegisters];

  TileBlock block(size_t operand) const {
    const int64_t* const strides = space.strides[operand];
    int64_t at = 0;
    for (size_t d = 0; d < kTileRank; ++d) at += index[d] * strides[d];
    return {space.data[operand] + at * element_bytes(space, operand), rows, columns,
            strides[kTileRank - 2], strides[kTileRank - 1]};
  }
  // The operand's own memory, if it can serve as the register in this tile.
  float* memory_of(size_t operand) const {
    const int64_t* const strides = space.strides[operand];
    const bool dense = (columns == 1 || strides[kTileRank - 1] == 1) &&
                       (rows == 1 || strides[kTileRank - 2] == columns);
    if (!dense || space.is_bool[operand] || padded != rows * columns) return nullptr;
    return static_cast<float*>(block(operand).data);
  }
};

void run_tile(Span<const TileInstruction> program, const TileLoops& loops, Tile* tile) {
  const Space& space = tile->space;
  for (size_t i = 0; i < program.size(); ++i) {
    const TileInstruction& instruction = program[i];
    const size_t out = instruction.out;
    float* direct = nullptr;
    switch (instruction.op) {
      case TileOp::LOAD:
        if (space.direct[i]) direct = tile->memory_of(instruction.a);
        tile->registers[out] = direct != nullptr ? direct : tile->memory[out];
        if (direct != nullptr) break;
        (space.is_bool[instruction.a] ? loops.load_bool : loops.load)(tile->block(instruction.a),
                                                                      tile->memory[out]);
        break;
      case TileOp::STORE:
        // Nothing to copy if it is there already.
        if (tile->registers[instruction.a] == tile->memory_of(out)) break;
        (space.is_bool[out] ? loops.store_bool : loops.store)(tile->registers[instruction.a],
                                                              tile->block(out));
        break;
      case TileOp::CONSTANT:
        loops.fill(instruction.value, tile->memory[out], tile->padded);
        tile->registers[out] = tile->memory[out];
        break;
      default: {
        if (space.direct[i]) direct = tile->memory_of(program[i + 1].out);
        float* const to = direct != nullptr ? direct : tile->memory[out];
        loops.functions[static_cast<size_t>(instruction.op)](
            tile->registers[instruction.a], tile->registers[instruction.b],
            tile->registers[instruction.c], instruction.value, to, tile->padded);
        tile->registers[out] = to;
      }
    }
  }
}

void run_space(Span<const TileInstruction> program, const Space& space, int64_t begin,
               int64_t end) {
  alignas(64) float memory[kTileRegisters][kRegisterFloats];
  const TileLoops& loops = tile_loops();
  Tile tile = {space, {}, 0, 0, 0, memory, {}};
  // Operators of fewer operands get pointers that they do not read.
  for (size_t r = 0; r < kTileRegisters; ++r) tile.registers[r] = memory[r];
  for (int64_t at = begin; at < end; ++at) {
    tile.index[3] = at % space.column_tiles * space.tile_columns;
    int64_t rest = at / space.column_tiles;
    tile.index[2] = rest % space.row_tiles * space.tile_rows;
    rest /= space.row_tiles;
    tile.index[1] = rest % space.sizes[1];
    tile.index[0] = rest / space.sizes[1];
    tile.rows = least(space.tile_rows, space.sizes[2] - tile.index[2]);
    tile.columns = least(space.tile_columns, space.sizes[3] - tile.index[3]);
    tile.padded = (tile.rows * tile.columns + kTilePad - 1) / kTilePad * kTilePad;
    run_tile(program, loops, &tile);
  }
}

int64_t tiles_of(const Space& space) {
  return space.sizes[0] * space.sizes[1] * space.row_tiles * space.column_tiles;
}

}  // namespace

bool tile_program_valid(Span<const TileInstruction> program, size_t operands) {
  if (program.size() > kTileInstructions || operands > kTileOperands) return false;
  bool written[kTileRegisters] = {};
  for (const TileInstruction& instruction : program) {
    if (static_cast<size_t>(instruction.op) >= kTileOps) return false;
    if (instruction.op == TileOp::LOAD && instruction.a >= operands) return false;
    const Reads read = reads_of(instruction);
    for (size_t i = 0; i < read.count; ++i) {
      if (read.registers[i] >= kTileRegisters || !written[read.registers[i]]) return false;
    }
    // All three pointers are formed, even if the instruction does not use them.
    if (instruction.op >= TileOp::ADD &&
        (instruction.a >= kTileRegisters || instruction.b >= kTileRegisters ||
         instruction.c >= kTileRegisters)) {
      return false;
    }
    if (instruction.op == TileOp::STORE) {
      if (instruction.out >= operands) return false;
      continue;
    }
    if (instruction.out >= kTileRegisters) return false;
    written[instruction.out] = true;
  }
  return true;
}

void run_tiles(const TileRun& run, Workers* workers) {
  constexpr int64_t kStarts[kTileRank] = {};
  Space space;
  if (!prepare(run, run.sizes, kStarts, &space)) return;
  share_out(workers, tiles_of(space), kGrainTiles,
            [&](int64_t begin, int64_t end) { run_space(run.program, space, begin, end); });
}

void run_tile_block(const TileRun& run, int64_t row, int64_t rows, int64_t column,
                    int64_t columns) {
  const int64_t sizes[kTileRank] = {1, 1, rows, columns};
  const int64_t starts[kTileRank] = {0, 0, row, column};
  Space space;
  if (!prepare(run, sizes, starts, &space)) return;
  run_space(run.program, space, 0, tiles_of(space));
}

}  // namespace rushlight::engine
