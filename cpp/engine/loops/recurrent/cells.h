// Inner loops of recurrent cells: from the gates' sums to the new state of one row.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/recurrent.h"
#include "rushlight/kernel/loops/dispatch.h"

namespace rushlight::engine {

// One row of a batch. A gate has `units` numbers, and gates lie one after the other.
struct CellRow {
  int64_t units = 0;
  const float* input = nullptr;   // the input's share of all gates
  const float* own = nullptr;     // the hidden state's share
  const float* bias = nullptr;    // of a GRU: added to `own` of the new gate; may be nullptr
  const float* hidden = nullptr;  // of a GRU: the state before
  float* cell = nullptr;          // of an LSTM: the cell state, which is replaced
  float* out = nullptr;           // the new hidden state
};

struct CellLoops {
  void (*row[kRecurrentCells])(const CellRow& row);  // by RecurrentCell
};

RL_LOOPS(CellLoops, cell_loops)

}  // namespace rushlight::engine
