// Recurrent layers, one above the other, over a sequence.
//
// Weights of all layers and directions are one vector: of each layer, forward first, the matrix of
// the input [width, gates * units], that of the hidden state [outputs, gates * units] and, if the
// hidden state is projected, that of the projection [units, outputs], each in panels (panels.h).
// Gates are in torch's order: input, forget, new, output of an LSTM; reset, update, new of a GRU.
#pragma once

#include <cstdint>

#include "rushlight/engine/types/panels.h"

namespace rushlight::engine {

enum class RecurrentCell : uint8_t { Lstm, Gru, RnnTanh, RnnRelu };
constexpr int kRecurrentCells = 4;

constexpr int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::Lstm ? 4 : (cell == RecurrentCell::Gru ? 3 : 1);
}

// Sizes of recurrent layers.
struct RecurrentSizes {
  RecurrentCell cell = RecurrentCell::Lstm;
  PanelType type = PanelType::Float32;  // of weights: not Int4
  int64_t length = 0;
  int64_t batch = 0;
  int64_t width = 0;    // of an element of the sequence
  int64_t units = 0;    // of the cell state
  int64_t outputs = 0;  // of the hidden state: fewer than units if it is projected
  int64_t layers = 0;
  int64_t directions = 1;

  int64_t columns() const { return gates_of(cell) * units; }
  bool projects() const { return outputs < units; }
  // Width of what a layer gets.
  int64_t width_of(int64_t layer) const { return layer == 0 ? width : directions * outputs; }
};

struct Recurrent {
  RecurrentSizes sizes;
  // Element (t, row, i) of the sequence at t * x_stride + row * x_row + i.
  const float* x = nullptr;
  int64_t x_stride = 0, x_row = 0;
  const void* weights = nullptr;
  // What is added to the gates of each layer, filled up with zeros to whole panels; of a GRU then
  // what is added to the hidden state's share of the new gate. May be nullptr.
  const float* bias = nullptr;
  // Of Int8: for each column of each matrix, filled up to whole panels, its scale and the sum of
  // its weights.
  const float* scales = nullptr;
  const int32_t* shares = nullptr;
  // [layers * directions, batch, outputs], and [layers * directions, batch, units] of an LSTM;
  // nullptr: zeros.
  const float* hidden = nullptr;
  const float* cell = nullptr;
  float* out = nullptr;  // [length, batch, directions * outputs], as x lies
  int64_t out_stride = 0, out_row = 0;
  float* last_hidden = nullptr;  // may be nullptr
  float* last_cell = nullptr;
};

}  // namespace rushlight::engine
