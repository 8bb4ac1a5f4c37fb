// SPDX-License-Identifier: Apache-2.0
#include "train/offload/offloaded_weights.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "parallel/shard/parameter_memory.h"

namespace welkin::train {
namespace {

std::vector<at::Tensor> weights_of(const parallel::ParamTable& table) {
  std::vector<at::Tensor> weights;
  for (const parallel::ParamRow& row : table.rows()) weights.push_back(row.local);
  return weights;
}

}  // namespace

OffloadedWeights::OffloadedWeights(std::unique_ptr<GradientExchange> exchange, model::Model& model, parallel::ParamTable& table,
                                   const std::filesystem::path& folder)
    : exchange_(std::move(exchange)), store_(folder, weights_of(table)) {
  for (size_t number = 0; number < table.rows().size(); ++number) {
    parallel::ParamRow& row = table.rows()[number];
    if (row.local.requires_grad()) trained_.push_back(number);
    row.read = [this, number] { return store_.read(number); };
    row.write = [this, number](const at::Tensor& values) { store_.write(number, values); };
  }
  std::vector<parallel::WeightUnit> units = parallel::weight_units(model, table);
  parallel::WeightUnit* whole = nullptr;  // of the chunk
  for (parallel::WeightUnit& unit : units) {
    if (unit.site == nullptr) whole = &unit;
    if (unit.is_matmul) whole->rows.insert(whole->rows.end(), unit.rows.begin(), unit.rows.end());
  }
  std::erase_if(units, [](const parallel::WeightUnit& unit) { return unit.is_matmul; });
  for (const parallel::WeightUnit& unit : units) add(unit, table);
}

void OffloadedWeights::add(const parallel::WeightUnit& unit, parallel::ParamTable& table) {
  const size_t number = units_.size();
  Unit own{.weights = {}, .is_whole_model = unit.site == nullptr, .chunk = unit.chunk, .other_chunks = unit.other_chunks};
  for (const parallel::ParamRow* row : unit.rows) {
    own.weights.push_back(static_cast<size_t>(row - table.rows().data()));
    if (!row->local.requires_grad()) continue;
    ++own.num_trained;
    listen(*row, number);
  }
  own.is_trained = own.num_trained == own.weights.size();
  units_.push_back(std::move(own));
  if (unit.site != nullptr) install(*unit.site, number);
}

// A unit with frozen weights stays until the end of the pass, since these have no gradients that mark its end.
void OffloadedWeights::listen(const parallel::ParamRow& row, size_t number) {
  parallel::on_gradient(row.local, [this, number] {
    Unit& unit = units_[number];
    if (unit.missing == 0 || --unit.missing > 0) return;
    if (!unit.is_whole_model && unit.is_trained) release(unit);
  });
}

// The last unit of a pass stays: the backward pass begins with it.
void OffloadedWeights::install(model::Site& site, size_t number) {
  parallel::surround_passes(
      site, [this, number](int64_t direction) { bring(number, direction); },
      [this, number](bool has_graph) {
        const bool is_last = !is_of_chunk(static_cast<int64_t>(number) + 1, units_[number].chunk);
        if (!has_graph || !is_last) release(units_[number]);
      });
}

void OffloadedWeights::start_unit(Unit& unit) {
  if (std::exchange(unit.is_started, true)) return;
  for (const size_t weight : unit.weights) store_.start(weight);
}

bool OffloadedWeights::is_of_chunk(int64_t number, int64_t chunk) const {
  return number >= 0 && number < static_cast<int64_t>(units_.size()) && units_[static_cast<size_t>(number)].chunk == chunk;
}

// Brings the unit, and begins to read the next one in this direction.
void OffloadedWeights::bring(size_t number, int64_t direction) {
  Unit& unit = units_[number];
  if (direction < 0 && weights_wait_) release_behind(number);
  start_unit(unit);
  const int64_t next = static_cast<int64_t>(number) + direction;
  if (is_of_chunk(next, unit.chunk)) start_unit(units_[static_cast<size_t>(next)]);
  if (std::exchange(unit.is_there, true)) return;
  for (const size_t weight : unit.weights) store_.wait(weight);
}

void OffloadedWeights::release(Unit& unit) {
  if (!std::exchange(unit.is_started, false)) return;
  if (!std::exchange(unit.is_there, false)) {
    for (const size_t weight : unit.weights) store_.wait(weight);
  }
  for (const size_t weight : unit.weights) store_.let_go(weight, /*is_changed=*/false);
}

void OffloadedWeights::release_all() {
  for (Unit& unit : units_) release(unit);
}

// A backward pass that comes to a unit is done with the units behind it.
void OffloadedWeights::release_behind(size_t number) {
  for (size_t i = number + 1; is_of_chunk(static_cast<int64_t>(i), units_[number].chunk); ++i) release(units_[i]);
}

// Brings the weights outside of sites.
void OffloadedWeights::bring_whole(int64_t chunk, int64_t direction) {
  for (size_t i = 0; i < units_.size(); ++i) {
    const Unit& unit = units_[i];
    const bool is_needed = unit.chunk == chunk || std::ranges::find(unit.other_chunks, chunk) != unit.other_chunks.end();
    if (unit.is_whole_model && is_needed) bring(i, unit.chunk == chunk ? direction : 0);
  }
}

void OffloadedWeights::before_forward() {
  exchange_->before_forward();
  bring_whole(0, /*direction=*/1);
}

void OffloadedWeights::before_chunk(int64_t chunk) {
  exchange_->before_chunk(chunk);
  bring_whole(chunk, /*direction=*/1);
}

// A pass without a graph needs the weights no more.
void OffloadedWeights::after_forward() {
  exchange_->after_forward();
  if (!at::GradMode::is_enabled()) release_all();
}

void OffloadedWeights::begin_backward() {
  for (Unit& unit : units_) unit.missing = unit.num_trained;
}

void OffloadedWeights::backward(const at::Tensor& loss, bool is_last) {
  begin_backward();
  exchange_->backward(loss, is_last);
  release_all();
}

// This runs long after the chunk's forward pass.
void OffloadedWeights::backward_chunk(const at::Tensor& root, const parallel::GradientPass& pass) {
  begin_backward();
  weights_wait_ = pass.weights_wait;
  bring_whole(pass.chunk, /*direction=*/0);
  exchange_->backward_chunk(root, pass);
  weights_wait_ = false;
  release_all();
}

void OffloadedWeights::start(const std::vector<size_t>& parameters) {
  for (const size_t parameter : parameters) store_.start(trained_[parameter]);
}

void OffloadedWeights::wait(const std::vector<size_t>& parameters) {
  for (const size_t parameter : parameters) store_.wait(trained_[parameter]);
}

void OffloadedWeights::let_go(const std::vector<size_t>& parameters, bool is_changed) {
  for (const size_t parameter : parameters) store_.let_go(trained_[parameter], is_changed);
}

}  // namespace welkin::train
