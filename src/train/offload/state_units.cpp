// SPDX-License-Identifier: Apache-2.0
#include "train/offload/state_units.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "ops/update/pieces.h"
#include "train/offload/spill_file.h"

namespace welkin::train {
namespace {

constexpr size_t kStateAlignment = 64;  // a cache line, and the size of a 512-bit vector

c10::StorageImpl& storage_behind(const at::Tensor& tensor) { return *tensor.storage().unsafeGetStorageImpl(); }

size_t bytes_of_state(const at::Tensor& state) { return state.nbytes(); }

// (elements) in the order of memory, as a view.
at::Tensor flat_memory(const at::Tensor& dense) { return in_memory_order(dense.detach()).view({-1}); }

bool goes_with(const std::string& state, const std::string& parameter) {
  return state == parameter || state.ends_with("." + parameter);
}

// The window whose parameter the state goes with; null for none.
const StateWindow* window_of(const StateWindows& windows, const std::string& state) {
  const StateWindow* best = nullptr;
  for (const StateWindow& window : windows) {
    const std::string& name = window.parameter.name;
    if (goes_with(state, name) && (best == nullptr || name.size() > best->parameter.name.size())) best = &window;
  }
  return best;
}

// Shape, strides and type of a tensor, without memory.
at::Tensor without_memory(const at::Tensor& like, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::Tensor empty = at::empty({0}, like.options().requires_grad(false));
  empty.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return empty;
}

// Lets `own` share the window's elements; it is no view, so it has a gradient of its own.
void look_at_memory(at::Tensor& own, const at::Tensor& parameter, const StateWindow& window) {
  const at::NoGradGuard no_grad;
  own.set_(parameter.storage(), parameter.storage_offset() + window.begin, {window.count}, {1});
}

at::Tensor as_bytes(std::span<std::byte> memory) {
  return at::from_blob(memory.data(), {static_cast<int64_t>(memory.size())}, at::TensorOptions(at::kByte));
}

}  // namespace

std::vector<StateWindows> state_units(const std::vector<OptimizerParameter>& parameters, UpdateScope scope,
                                      double bytes_per_element, int64_t buffer_bytes) {
  const auto fitting = static_cast<int64_t>(static_cast<double>(buffer_bytes) / bytes_per_element);
  const int64_t most = std::max<int64_t>(ops::kPiece, fitting / ops::kPiece * ops::kPiece);
  std::vector<StateWindows> units(1);
  int64_t filled = 0;
  for (size_t row = 0; row < parameters.size(); ++row) {
    const OptimizerParameter& parameter = parameters[row];
    const int64_t own = parameter.value.numel();
    const bool is_cut = scope == UpdateScope::Element && own > most && parameter.value.is_non_overlapping_and_dense();
    const int64_t counted = scope == UpdateScope::Element ? own : parameter.elements();
    for (int64_t begin = 0; begin == 0 || begin < own; begin += is_cut ? most : own) {
      const int64_t count = is_cut ? std::min(most, own - begin) : own;
      const int64_t room = is_cut ? count : counted;
      if (filled > 0 && filled + room > most) {
        units.emplace_back();
        filled = 0;
      }
      filled += room;
      StateWindow window{.row = row, .is_whole = !is_cut, .begin = begin, .count = count, .parameter = parameter};
      if (is_cut) {
        window.parameter.value = at::empty({0}, parameter.value.options().requires_grad(false));
        look_at_memory(window.parameter.value, parameter.value, window);
      }
      units.back().push_back(std::move(window));
      if (own == 0) break;
    }
  }
  return units;
}

std::vector<OptimizerParameter> parameters_of(const StateWindows& windows) {
  std::vector<OptimizerParameter> parameters;
  for (const StateWindow& window : windows) parameters.push_back(window.parameter);
  return parameters;
}

void renew_windows(StateWindows& windows, const std::vector<OptimizerParameter>& parameters, bool has_gradients) {
  for (StateWindow& window : windows) {
    if (window.is_whole) continue;
    at::Tensor& view = window.parameter.value;
    view.mutable_grad() = at::Tensor();
    const OptimizerParameter& parameter = parameters[window.row];
    look_at_memory(view, parameter.value, window);
    if (!has_gradients) continue;
    const StepLists lists = with_gradients({parameter}, parameter.decays);
    if (lists.rows.empty()) continue;
    view.mutable_grad() = lists.gradients.front().view({-1}).narrow(0, window.begin, window.count);
  }
}

std::span<std::byte> HostBuffers::take(size_t bytes) {
  const auto options = at::TensorOptions(at::kByte).pinned_memory(device_.is_cuda());
  buffers_.push_back(at::empty({static_cast<int64_t>(bytes + kBlockAlignment)}, options));
  auto* const begin = static_cast<std::byte*>(buffers_.back().mutable_data_ptr());
  const size_t over = reinterpret_cast<uintptr_t>(begin) % kBlockAlignment;
  return {begin + (over == 0 ? 0 : kBlockAlignment - over), bytes};
}

StateUnits::StateUnits(std::vector<OptimizerParameter> parameters, c10::Device device, const MakeStore& make_store, bool staged)
    : parameters_(std::move(parameters)),
      device_(device),
      staged_(staged || !device.is_cpu()),
      buffers_(device),
      store_(make_store([this](size_t bytes) { return buffers_.take(bytes); })) {}

// Places the states of a unit; returns the bytes of its block.
size_t StateUnits::place(Unit& unit) const {
  size_t end = 0;
  for (Placed& placed : unit.placed) {
    placed.offset = end;
    placed.bytes = bytes_of_state(placed.state);
    end += (placed.bytes + kStateAlignment - 1) / kStateAlignment * kStateAlignment;
  }
  return aligned_size(end);
}

void StateUnits::list(const StateWindow& window, const NamedState& state, size_t unit, size_t placed) {
  const auto known = std::ranges::find(whole_, state.name, &WholeState::name);
  const Piece piece{.unit = unit, .placed = placed, .begin = window.is_whole ? 0 : window.begin, .count = state.value.numel()};
  if (known != whole_.end()) {
    known->pieces.push_back(piece);
    return;
  }
  const at::Tensor& shape = window.is_whole ? state.value : parameters_[window.row].value;
  whole_.push_back({.name = state.name,
                    .like = without_memory(state.value, shape.sizes(), shape.strides()),
                    .run = state.run,
                    .pieces = {piece}});
}

void StateUnits::add(const StateWindows& windows, const std::vector<NamedState>& states) {
  const at::NoGradGuard no_grad;
  Unit unit;
  for (const NamedState& state : states) {
    const StateWindow* const window = window_of(windows, state.name);
    if (window == nullptr) {
      unit.counts.push_back(state.value);
      unit.count_names.push_back(state.name);
      continue;
    }
    list(*window, state, units_.size(), unit.placed.size());
    unit.placed.push_back({.state = state.value});
  }
  HostBuffers scratch{at::Device(at::kCPU)};
  const std::span<std::byte> content = scratch.take(place(unit));
  std::ranges::fill(content, std::byte{0});
  for (const Placed& placed : unit.placed) {
    WELKIN_CHECK(placed.state.storage_offset() == 0 && storage_behind(placed.state).nbytes() == placed.bytes,
                 "an optimizer's state has memory of its own");
    const at::Tensor values = flat_memory(placed.state).cpu();
    if (placed.bytes > 0) std::memcpy(content.data() + placed.offset, values.const_data_ptr(), placed.bytes);
  }
  attach(unit, nullptr);
  store_->add(content);
  units_.push_back(std::move(unit));
}

void StateUnits::begin() {
  store_->begin();
  if (!staged_) return;
  size_t largest = 0;
  for (Unit& unit : units_) largest = std::max(largest, place(unit));
  stage_ = at::empty({static_cast<int64_t>(largest + kBlockAlignment)}, at::TensorOptions(at::kByte).device(device_));
}

// `memory` null: the states have no memory.
void StateUnits::attach(const Unit& unit, std::byte* memory) const {
  for (const Placed& placed : unit.placed) {
    c10::StorageImpl& storage = storage_behind(placed.state);
    void* const data = memory == nullptr ? nullptr : memory + placed.offset;
    storage.set_data_ptr_noswap(at::DataPtr(data, placed.state.device()));
    storage.set_nbytes(memory == nullptr ? size_t{0} : placed.bytes);
  }
}

void StateUnits::run(size_t unit, std::span<std::byte> memory, const std::function<void(size_t)>& body) {
  struct Detach {  // on an error of the body too: the memory is the store's
    const StateUnits& units;
    const Unit& unit;
    ~Detach() { units.attach(unit, nullptr); }
  };
  const Detach detach{*this, units_[unit]};
  if (!staged_) {
    attach(units_[unit], memory.data());
    body(unit);
    return;
  }
  const at::Tensor host = as_bytes(memory), stage = stage_.narrow(0, 0, host.numel());
  stage.copy_(host, /*non_blocking=*/true);
  attach(units_[unit], static_cast<std::byte*>(stage_.mutable_data_ptr()));
  body(unit);
  at::Tensor(host).copy_(stage, /*non_blocking=*/true);
  if (store_->is_file()) wait_for_device();
}

// Waits until the device's copies to host memory are done.
void StateUnits::wait_for_device() const {
  if (!device_.is_cpu()) c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).synchronize();
}

void StateUnits::pass(const std::function<void(size_t unit)>& body) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> counts;
  for (const at::Tensor& count : units_.front().counts) counts.push_back(count.clone());
  store_->pass([&](size_t unit, std::span<std::byte> memory) {
    for (size_t i = 0; i < counts.size(); ++i) units_[unit].counts[i].copy_(counts[i]);
    run(unit, memory, body);
  });
}

at::Tensor StateUnits::read(const WholeState& state) {
  wait_for_device();
  const at::Tensor values =
      at::empty_strided(state.like.sizes(), state.like.strides(), state.like.options().device(at::kCPU).requires_grad(false));
  auto* const out = static_cast<std::byte*>(values.mutable_data_ptr());
  for (const Piece& piece : state.pieces) {
    const Placed& placed = units_[piece.unit].placed[piece.placed];
    store_->visit(piece.unit, /*changes=*/false, [&](size_t /*block*/, std::span<std::byte> memory) {
      if (placed.bytes == 0) return;
      std::memcpy(out + static_cast<size_t>(piece.begin * values.element_size()), memory.data() + placed.offset, placed.bytes);
    });
  }
  return values.to(device_);
}

void StateUnits::write(const WholeState& state, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  wait_for_device();
  at::Tensor ordered =
      at::empty_strided(state.like.sizes(), state.like.strides(), state.like.options().device(at::kCPU).requires_grad(false));
  ordered.copy_(values);
  const auto* const in = static_cast<const std::byte*>(ordered.const_data_ptr());
  for (const Piece& piece : state.pieces) {
    const Placed& placed = units_[piece.unit].placed[piece.placed];
    store_->visit(piece.unit, /*changes=*/true, [&](size_t /*block*/, std::span<std::byte> memory) {
      if (placed.bytes == 0) return;
      std::memcpy(memory.data() + placed.offset, in + static_cast<size_t>(piece.begin * ordered.element_size()), placed.bytes);
    });
  }
}

std::vector<NamedState> StateUnits::states() {
  std::vector<NamedState> all;
  const Unit& first = units_.front();
  for (size_t i = 0; i < first.counts.size(); ++i) all.push_back({first.count_names[i], first.counts[i]});
  for (const WholeState& state : whole_) {
    all.push_back({.name = state.name,
                   .value = state.like,
                   .run = state.run,
                   .read = [this, &state] { return read(state); },
                   .write = [this, &state](const at::Tensor& values) { write(state, values); }});
  }
  return all;
}

}  // namespace welkin::train
