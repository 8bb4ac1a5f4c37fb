// SPDX-License-Identifier: Apache-2.0
// States of parameters as blocks of a store. A unit is some parameters, or windows of large ones, with an object of its own (an
// optimizer, an average). Its states have memory only while a pass is at the unit. The objects do the computation; this class
// makes all states appear as those of one object, under its names.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/offload/block_store.h"
#include "train/optim/optimizer.h"

namespace welkin::train {

// A parameter, or a range of its elements in the order of memory.
struct StateWindow {
  size_t row = 0;  // index of the parameter
  bool is_whole = true;
  int64_t begin = 0, count = 0;
  OptimizerParameter parameter{};  // for the unit's object: the parameter itself, or a view of the window
};
using StateWindows = std::vector<StateWindow>;

// Units whose states take about `buffer_bytes` each. If the update is per element, large parameters are cut where the kernels
// cut them. Else a unit has whole parameters, and the units are equal on all ranks that hold parts of the same ones.
std::vector<StateWindows> state_units(const std::vector<OptimizerParameter>& parameters, UpdateScope scope,
                                      double bytes_per_element, int64_t buffer_bytes);
std::vector<OptimizerParameter> parameters_of(const StateWindows& windows);

// Renews the windows' views of the present weights and gradients; `has_gradients` false removes the gradients.
void renew_windows(StateWindows& windows, const std::vector<OptimizerParameter>& parameters, bool has_gradients);

// Host memory for a store, aligned to a page and pinned for a GPU.
class HostBuffers {
 public:
  explicit HostBuffers(c10::Device device) : device_(device) {}
  std::span<std::byte> take(size_t bytes);

 private:
  c10::Device device_;
  std::vector<at::Tensor> buffers_;
};

class StateUnits {
 public:
  using MakeStore = std::function<std::unique_ptr<BlockStore>(HostMemory)>;

  // `staged`: states are copied to the device for a pass. This is always so on a GPU.
  StateUnits(std::vector<OptimizerParameter> parameters, c10::Device device, const MakeStore& make_store, bool staged = false);
  StateUnits(const StateUnits&) = delete;
  StateUnits& operator=(const StateUnits&) = delete;

  // Takes over the states of the next unit's object: their values go into the store and their memory is freed. States that
  // belong to no parameter (counts of steps) stay in memory; the first unit's stand for all.
  void add(const StateWindows& windows, const std::vector<NamedState>& states);
  void begin();  // after the last add()

  // Calls body(unit) for each unit: its states have memory, and its counts have the first unit's values from before the pass.
  void pass(const std::function<void(size_t unit)>& body);

  // The states as one object would have them.
  std::vector<NamedState> states();

  const BlockStore& store() const { return *store_; }
  const std::vector<OptimizerParameter>& parameters() const { return parameters_; }

 private:
  struct Placed {
    at::Tensor state;
    size_t offset = 0, bytes = 0;
  };
  struct Unit {
    std::vector<Placed> placed;
    std::vector<at::Tensor> counts;
    std::vector<std::string> count_names;
  };
  struct Piece {
    size_t unit, placed;
    int64_t begin, count;  // elements of the whole state
  };
  struct WholeState {
    std::string name;
    at::Tensor like;  // has shape, strides and type, but no memory
    int64_t run = 0;  // NamedState::run
    std::vector<Piece> pieces;
  };

  size_t place(Unit& unit) const;
  void list(const StateWindow& window, const NamedState& state, size_t unit, size_t placed);
  void attach(const Unit& unit, std::byte* memory) const;
  void run(size_t unit, std::span<std::byte> memory, const std::function<void(size_t)>& body);
  void wait_for_device() const;
  at::Tensor read(const WholeState& state);
  void write(const WholeState& state, const at::Tensor& values);

  std::vector<OptimizerParameter> parameters_;
  c10::Device device_;
  bool staged_;
  HostBuffers buffers_;
  std::unique_ptr<BlockStore> store_;
  std::vector<Unit> units_;
  std::vector<WholeState> whole_;
  at::Tensor stage_;  // on the device, as large as the largest block
};

}  // namespace welkin::train
