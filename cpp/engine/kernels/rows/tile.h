// Runs tile programs (../../types/tile.h).
#pragma once

#include "rushlight/engine/types/tile.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// False if there are too many instructions, if a register, an operand or an op is out of range, or
// if a register is read before it is written: programs from files are checked with this before they
// run.
bool tile_program_valid(Span<const TileInstruction> program, size_t operands);

void run_tiles(const TileRun& run, Workers* workers);
// Runs the part of a program for rows row..row+rows-1 of dimension 2 and columns
// column..column+columns-1 of dimension 3, on this thread. An Epilogue calls it. Dimensions 0 and 1
// have size 1.
void run_tile_block(const TileRun& run, int64_t row, int64_t rows, int64_t column, int64_t columns);

}  // namespace rushlight::engine
