// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/gathered_units.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <utility>

#include "parallel/shard/parameter_memory.h"

namespace welkin::parallel {
namespace {

c10::StorageImpl& storage_of(const at::Tensor& tensor) { return *tensor.storage().unsafeGetStorageImpl(); }

// A separate tensor over the same storage. Writes to it do not count as changes of the parameter, of which autograd may have
// kept views; and it follows the storage's memory.
at::Tensor alias_of_memory(const at::Tensor& tensor) {
  return at::empty({0}, tensor.options().requires_grad(false)).set_(tensor.storage(), 0, {tensor.numel()}, {1});
}

void drop_memory(const at::Tensor& tensor) {
  c10::StorageImpl& storage = storage_of(tensor);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, tensor.device()));
  storage.set_nbytes(size_t{0});
}

void give_memory(const at::Tensor& tensor) {
  c10::StorageImpl& storage = storage_of(tensor);
  const size_t bytes = tensor.nbytes();
  at::Allocator* allocator = storage.allocator() != nullptr ? storage.allocator() : c10::GetAllocator(tensor.device().type());
  storage.set_data_ptr_noswap(allocator->allocate(bytes));
  storage.set_nbytes(bytes);
}

// Rows in runs of one element type, in order.
std::vector<std::vector<ParamRow*>> runs_of_one_type(const std::vector<ParamRow*>& rows) {
  std::vector<std::vector<ParamRow*>> runs;
  for (ParamRow* row : rows) {
    if (runs.empty() || runs.back().front()->local.scalar_type() != row->local.scalar_type()) runs.emplace_back();
    runs.back().push_back(row);
  }
  return runs;
}

// Whether its memory is a message: pieces of equal length, in the parameter's type.
bool is_memory(const ParamRow& row) { return row.split.is_even() && !row.gathered_as; }

std::vector<ParamRow*> trained_of(const std::vector<ParamRow*>& rows) {
  std::vector<ParamRow*> trained = rows;
  std::erase_if(trained, [](const ParamRow* row) { return !row->local.requires_grad(); });
  return trained;
}

}  // namespace

GatheredUnits::GatheredUnits(std::vector<WeightUnit> units, const Group& group, const GatherOptions& options)
    : group_(group), options_(options) {
  for (const WeightUnit& unit : units) add(unit);
}

// A message has one element type.
void GatheredUnits::add(const WeightUnit& unit) {
  for (const std::vector<ParamRow*>& rows : runs_of_one_type(unit.rows)) {
    trained_.push_back(trained_of(rows));
    Unit added{.is_whole_model = unit.site == nullptr,
               .is_trained = trained_.back().size() == rows.size(),
               .chunk = unit.chunk,
               .other_chunks = unit.other_chunks,
               .rows = rows,
               .direct = {},
               .direct_memories = {},
               .bucket = {},
               .memories = {},
               .all = {}};
    std::vector<ParamRow*> packed;
    for (ParamRow* row : rows) {
      row->split = MemorySplit(row->local, group_.size(), row->split_block);
      (is_memory(*row) && row->local.nbytes() >= ShardBucket::kLeastOfOwn ? added.direct : packed).push_back(row);
    }
    if (packed.size() == 1 && is_memory(*packed.front())) added.direct.push_back(std::exchange(packed, {}).front());
    for (ParamRow* row : added.direct) added.direct_memories.push_back(shard_weights(*row));
    if (!packed.empty()) added.bucket = ShardBucket(std::move(packed), group_.size());
    for (ParamRow* row : added.bucket.rows()) added.memories.push_back(shard_weights(*row));
    units_.push_back(std::move(added));
    if (unit.site != nullptr) install(*unit.site, units_.size() - 1);
  }
}

// Returns a tensor that follows the row's memory.
at::Tensor GatheredUnits::shard_weights(ParamRow& row) const {
  const at::NoGradGuard no_grad;
  own_storage(row.local);
  at::Tensor memory = alias_of_memory(row.local);
  row.shard = row.split.piece_of(memory, group_.group_rank()).clone();
  row.is_released = true;
  drop_memory(row.local);
  return memory;
}

void GatheredUnits::install(model::Site& site, size_t number) {
  surround_passes(
      site, [this, number](int64_t direction) { gather(number, direction); },
      [this, number](bool has_graph) {
        if (!has_graph || options_.reshard_after_forward) release(units_[number]);
      });
}

void GatheredUnits::ask_for_pieces(Unit& unit) {
  if (holder_ == nullptr || unit.place != Place::Shards || std::exchange(unit.has_pieces, true)) return;
  holder_->start_pieces(unit.rows);
}

void GatheredUnits::let_go_of_pieces(Unit& unit) {
  if (!std::exchange(unit.has_pieces, false)) return;
  if (unit.place == Place::Shards) holder_->wait_for_pieces(unit.rows);  // nobody has waited for them yet
  holder_->let_go_of_pieces(unit.rows);
}

void GatheredUnits::start(Unit& unit) {
  if (unit.place != Place::Shards) return;
  const at::NoGradGuard no_grad;
  ask_for_pieces(unit);
  if (holder_ != nullptr) holder_->wait_for_pieces(unit.rows);
  for (size_t i = 0; i < unit.direct.size(); ++i) {
    give_memory(unit.direct[i]->local);
    const at::Tensor all = unit.direct_memories[i].view({group_.size(), -1});
    unit.transfers.push_back(start_all_gather_into(group_, all, unit.direct[i]->shard.reshape({-1})));
  }
  if (!unit.bucket.rows().empty()) {
    const at::Tensor part = unit.bucket.packed_pieces();
    unit.all = unit.bucket.room_for_all(unit.memories);
    unit.transfers.push_back(start_all_gather_into(group_, unit.all, part));
  }
  unit.place = Place::UnderWay;
}

void GatheredUnits::wait(Unit& unit) {
  for (Transfer& transfer : unit.transfers) transfer.wait();
  unit.transfers.clear();
  let_go_of_pieces(unit);
}

// Gathers the unit, and starts those next in this direction.
void GatheredUnits::gather(size_t number, int64_t direction) {
  Unit& unit = units_[number];
  if (direction < 0 && weights_wait_) release_behind(number);
  start(unit);
  const auto last = static_cast<int64_t>(units_.size()) - 1;
  for (int64_t ahead = 1; ahead <= options_.prefetch + 1; ++ahead) {
    const int64_t next = static_cast<int64_t>(number) + direction * ahead;
    if (next < 0 || next > last || units_[static_cast<size_t>(next)].chunk != unit.chunk) break;
    Unit& other = units_[static_cast<size_t>(next)];
    ahead <= options_.prefetch ? start(other) : ask_for_pieces(other);
  }
  if (unit.place != Place::UnderWay) return;
  wait(unit);
  if (unit.all.defined()) {
    for (const ParamRow* row : unit.bucket.rows()) give_memory(row->local);
    unit.bucket.unpack_whole(unit.all, unit.memories, group_.group_rank());
    unit.all = at::Tensor();
  }
  unit.place = Place::Whole;
}

void GatheredUnits::release(Unit& unit) {
  if (unit.place == Place::Shards) return let_go_of_pieces(unit);
  wait(unit);
  unit.all = at::Tensor();
  for (const ParamRow* row : unit.direct) drop_memory(row->local);
  for (const ParamRow* row : unit.bucket.rows()) drop_memory(row->local);
  unit.place = Place::Shards;
}

void GatheredUnits::release_all() {
  for (Unit& unit : units_) release(unit);
}

// When a backward pass comes to a unit, later units are finished.
void GatheredUnits::release_behind(size_t number) {
  for (size_t i = number + 1; i < units_.size() && units_[i].chunk == units_[number].chunk; ++i) release(units_[i]);
}

void GatheredUnits::before_forward(int64_t chunk) {
  for (size_t i = 0; i < units_.size(); ++i) {
    if (!units_[i].is_of(chunk)) continue;
    if (!units_[i].is_whole_model) return start(units_[i]);
    gather(i, /*direction=*/units_[i].chunk == chunk ? 1 : 0);  // only neighbours of the same chunk
  }
}

// A pass without a graph needs no weights again.
void GatheredUnits::after_forward() {
  if (!at::GradMode::is_enabled()) release_all();
}

void GatheredUnits::before_backward(const GradientPass& pass) {
  stays_ = !pass.ends_chunk && !options_.reshard_after_forward;
  weights_wait_ = pass.weights_wait && !stays_;
  for (size_t i = 0; i < units_.size(); ++i) {
    if (units_[i].is_of(pass.chunk) && units_[i].is_whole_model) gather(i, /*direction=*/0);
  }
}

void GatheredUnits::after_backward(int64_t chunk) {
  weights_wait_ = false;
  if (std::exchange(stays_, false)) return;
  for (Unit& unit : units_) {
    if (unit.is_of(chunk)) release(unit);
  }
}

void GatheredUnits::after_gradients(size_t unit) {
  if (stays_) return;
  if (!units_[unit].is_whole_model && units_[unit].is_trained) release(units_[unit]);
}

// A new version number tells users of values derived from the weights that they have changed.
void GatheredUnits::after_update() {
  release_all();
  for (const Unit& unit : units_) {
    for (const auto* rows : {&unit.direct, &unit.bucket.rows()}) {
      for (const ParamRow* row : *rows) row->local.unsafeGetTensorImpl()->bump_version();
    }
  }
}

}  // namespace welkin::parallel
