// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/whole_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/shards.h"
#include "parallel/sharding/sharded_parallel.h"
#include "train/checkpoint/format/stored_tensor.h"
#include "train/checkpoint/staged_tensors.h"

namespace welkin::train {
namespace {

// The row whose parameter this is, or whose parameter it goes with; null if there is none.
const parallel::ParamRow* row_of(const std::string& name, const parallel::ParamTable& table) {
  const parallel::ParamRow* best = nullptr;
  for (const parallel::ParamRow& row : table.rows()) {
    const bool goes_with = name == row.name || name.ends_with("." + row.name);
    if (goes_with && (best == nullptr || row.name.size() > best->name.size())) best = &row;
  }
  return best;
}

std::vector<int64_t> in_order(int64_t dims) {
  std::vector<int64_t> order(static_cast<size_t>(dims));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Dims of size one may come in any order.
std::vector<int64_t> order_in_memory(const at::Tensor& dense) {
  std::vector<int64_t> order = in_order(dense.dim());
  std::ranges::stable_sort(order, std::greater(), [&](int64_t dim) { return dense.stride(dim); });
  return order;
}

int64_t numbers_in(int64_t elements, int64_t run) { return (elements + run - 1) / run; }

// How a tensor lies on the ranks: split over tp as its row is, as a piece, or both. A tensor whose dims differ from its
// parameter's (averages of rows, a count) is whole on every rank. A tensor with a `run` goes along the memory of a part. Each
// rank of tp has its own row of it: its blocks do not cross the cuts.
class SplitTensor {
 public:
  SplitTensor(const CheckpointTensor& tensor, const TensorLayout& layout)
      : layout_(layout), row_(row_of(tensor.name, layout.table)), tp_(layout.groups.along(parallel::Axis::Tp)), run_(tensor.run) {
    if (tensor.join_rows) rows_ = RankRows{tensor.join_rows, tensor.whole_shape, tensor.piece};
    if (row_ == nullptr) return;
    const bool has_pieces = layout.shards.size() > 1 && row_->shard.defined() && !tensor.value.is_same(row_->local);
    is_piece_ = has_pieces && (run_ > 0 || tensor.value.sizes() == row_->shard.sizes());
    const bool has_dims = is_piece_ || run_ > 0 || tensor.value.sizes() == row_->local.sizes();
    is_split_ = has_dims && tp_.size() > 1 && row_->placements[parallel::Axis::Tp].sharded();
  }

  bool is_whole() const { return !rows_ && !is_piece_ && !is_split_; }

  std::vector<int64_t> whole_shape() const {
    if (rows_) return rows_->whole_shape;
    if (run_ == 0) return row_->global_shape;
    std::vector<int64_t> shape = shape_of_runs();
    if (is_split_) shape.insert(shape.begin(), tp_.size());
    return shape;
  }

  // Every rank calls it.
  at::Tensor gather(const at::Tensor& local) const {
    if (rows_) return rows_->join();
    at::Tensor part = local.detach();
    if (is_piece_) part = run_ > 0 ? gather_runs(local) : parallel::gathered_whole(layout_.shards, *row_, local);
    if (!is_split_) return part;
    const parallel::Lengths ones(static_cast<size_t>(tp_.size()), 1);
    const at::Tensor parts = all_gather(tp_, part.unsqueeze(0), 0, ones);
    return run_ > 0 ? parts : parallel::join_shards(parts.unbind(0), tp_split());
  }

  // True if this rank writes its part.
  bool is_written_here() const {
    if (rows_) return rows_->place.has_value();
    const bool is_twice = (!is_piece_ && layout_.shards.group_rank() != 0) || (!is_split_ && tp_.group_rank() != 0);
    return !layout_.is_copy && !is_twice;
  }

  // The place of the values that this rank writes.
  PiecePlace place() const {
    if (rows_) return rows_->place.value();
    if (run_ > 0) {
      PiecePlace place{.whole_shape = whole_shape(), .layout = {}};
      place.layout.order = in_order(static_cast<int64_t>(place.whole_shape.size()));
      if (is_piece_) place.begin = row_->split.offset(layout_.shards.group_rank()) / run_;
      if (is_split_) place.layout.ranks = tp_.size();
      if (is_split_) place.part = tp_.group_rank();
      return place;
    }
    PiecePlace place = place_of_trained(*row_, layout_.groups, layout_.shards);
    if (!is_piece_) place.layout.order = in_order(row_->local.dim());
    if (!is_piece_) place.begin = 0;
    return place;
  }

  // Reads this rank's part, and nothing else.
  void read(const Checkpoint& checkpoint, const std::string& stored, const at::Tensor& local) const {
    const at::NoGradGuard no_grad;
    const at::Tensor values = checkpoint.read_piece(stored, place(), local.numel(), local.scalar_type());
    local.detach().copy_(values.view(local.sizes()));
  }

 private:
  // A tensor that belongs to no parameter; each rank has rows of it.
  struct RankRows {
    std::function<at::Tensor()> join;
    std::vector<int64_t> whole_shape;
    std::optional<PiecePlace> place;
  };

  // The shape of a tensor that goes along the memory of a part.
  std::vector<int64_t> shape_of_runs() const {
    if (run_ > 1) return {numbers_in(row_->local.numel(), run_)};
    std::vector<int64_t> shape;
    for (const int64_t dim : order_in_memory(row_->local)) shape.push_back(row_->local.size(dim));
    return shape;
  }

  at::Tensor gather_runs(const at::Tensor& local) const {
    parallel::Lengths lengths;
    for (int64_t member = 0; member < layout_.shards.size(); ++member) {
      lengths.push_back(numbers_in(row_->split.numel(member), run_));
    }
    return all_gather(layout_.shards, local, 0, lengths).view(shape_of_runs());
  }

  parallel::Shard tp_split() const {
    const parallel::Placement& placement = row_->placements[parallel::Axis::Tp];
    return {placement.dim(), placement.parts()};
  }

  TensorLayout layout_;
  const parallel::ParamRow* row_;
  const parallel::Group& tp_;
  int64_t run_;
  std::optional<RankRows> rows_{};
  bool is_piece_ = false, is_split_ = false;
};

// The shape of the whole tensor, of which `tensor` may be a part.
std::vector<int64_t> whole_shape_of(const CheckpointTensor& tensor, const TensorLayout& layout) {
  const SplitTensor split(tensor, layout);
  return split.is_whole() ? tensor.value.sizes().vec() : split.whole_shape();
}

// All tensors of a group over the stages of a pipeline, in one order on all: stage by stage, each at its first stage.
std::vector<StagedTensor> staged(const CheckpointGroup& local, const TensorLayout& layout) {
  std::vector<StagedTensor> own;
  for (const CheckpointTensor& tensor : local.tensors) {
    own.push_back({.name = tensor.name, .shape = whole_shape_of(tensor, layout), .type = tensor.value.scalar_type()});
  }
  return tensors_of_stages(layout.stages, own);
}

const CheckpointTensor* named(const CheckpointGroup& group, const std::string& name) {
  const auto found = std::ranges::find(group.tensors, name, &CheckpointTensor::name);
  return found == group.tensors.end() ? nullptr : &*found;
}

// Adds the tensors of other stages behind the own ones, with names, shapes and types, on `device` (kMeta: without memory).
CheckpointGroup with_other_stages(const CheckpointGroup& local, const TensorLayout& layout, c10::Device device) {
  CheckpointGroup all = local;
  if (layout.stages.size() == 1) return all;
  for (const StagedTensor& tensor : staged(local, layout)) {
    if (named(local, tensor.name) != nullptr) continue;
    all.tensors.push_back({.name = tensor.name, .value = at::empty(tensor.shape, at::TensorOptions(tensor.type).device(device))});
  }
  return all;
}

}  // namespace

PiecePlace place_of_trained(const parallel::ParamRow& row, const parallel::MeshGroups& groups, const parallel::Group& shards) {
  PiecePlace place{.whole_shape = row.global_shape, .layout = {.order = order_in_memory(row.local)}};
  if (row.shard.defined()) place.begin = row.split.offset(shards.group_rank());
  const parallel::Group& tp = groups.along(parallel::Axis::Tp);
  const parallel::Placement& placement = row.placements[parallel::Axis::Tp];
  if (tp.size() == 1 || !placement.sharded()) return place;
  place.layout.dim = placement.dim();
  place.layout.blocks = placement.parts();
  place.layout.ranks = tp.size();
  place.part = tp.group_rank();
  return place;
}

CheckpointGroup gather_whole(const CheckpointGroup& local, const TensorLayout& layout) {
  CheckpointGroup whole = with_other_stages(local, layout, at::kCPU);
  for (CheckpointTensor& tensor : whole.tensors) {
    const SplitTensor split(tensor, layout);
    tensor.value = split.is_whole() ? tensor.fetched() : split.gather(tensor.fetched());
    tensor.piece.reset();
    tensor.fetch = {};
    tensor.store = {};
  }
  return whole;
}

CheckpointGroup with_places(const CheckpointGroup& local, const TensorLayout& layout) {
  CheckpointGroup placed = with_other_stages(local, layout, at::kMeta);
  for (size_t i = 0; i < local.tensors.size(); ++i) {
    CheckpointTensor& tensor = placed.tensors[i];
    const SplitTensor split(tensor, layout);
    if (split.is_whole()) continue;
    tensor.whole_shape = split.whole_shape();
    tensor.piece = split.place();
  }
  return placed;
}

// A file holds wide elements first (SafetensorsWriter), and otherwise keeps the order.
WholeGroups::WholeGroups(std::vector<CheckpointGroup> local, const TensorLayout& layout) : groups_(std::move(local)) {
  layout.stages.size() > 1 ? join_stages(layout) : join_parts(layout);
}

void WholeGroups::join_parts(const TensorLayout& layout) {
  for (CheckpointGroup& group : groups_) {
    const auto width = [](const CheckpointTensor& tensor) { return -static_cast<int64_t>(tensor.value.element_size()); };
    std::ranges::stable_sort(group.tensors, {}, width);
    for (CheckpointTensor& tensor : group.tensors) {
      const SplitTensor split(tensor, layout);
      if (split.is_whole()) continue;
      const size_t number = split_.size();
      split_.emplace_back([split, part = tensor] { return split.gather(part.fetched()); });
      tensor.whole_shape = split.whole_shape();
      tensor.piece.reset();
      tensor.make_whole = [this, number] { return next(number); };
    }
  }
}

// The first stage, which writes, asks for them in this order. Each stage sends the tensors that it is the first to have.
void WholeGroups::join_stages(const TensorLayout& layout) {
  for (CheckpointGroup& group : groups_) {
    const CheckpointGroup local = std::exchange(group, {.name = group.name, .tensors = {}});
    std::vector<StagedTensor> tensors = staged(local, layout);
    std::ranges::stable_sort(tensors, {},
                             [](const StagedTensor& tensor) { return -static_cast<int64_t>(elementSize(tensor.type)); });
    for (const StagedTensor& tensor : tensors) {
      const CheckpointTensor* own = named(local, tensor.name);
      CheckpointTensor all =
          own != nullptr ? *own : CheckpointTensor{.name = tensor.name, .value = at::empty({0}, at::TensorOptions(tensor.type))};
      const size_t number = split_.size();
      split_.emplace_back([tensor, layout, part = all, is_own = own != nullptr] {
        return whole_on_first_stage(layout, tensor, [&] {
          WELKIN_CHECK(is_own, "a stage sends what it has");
          const SplitTensor split(part, layout);
          return split.is_whole() ? part.fetched().detach() : split.gather(part.fetched());
        });
      });
      all.whole_shape = tensor.shape;
      all.piece.reset();
      all.make_whole = [this, number] { return next(number); };
      group.tensors.push_back(std::move(all));
    }
  }
}

at::Tensor WholeGroups::next(size_t number) {
  WELKIN_CHECK(number == done_, "split tensors are put together in one order on all ranks");
  ++done_;
  if (!call_) return split_[number]();
  at::Tensor whole;
  call_([&] { whole = split_[number](); });
  return whole;
}

void WholeGroups::join_others() {
  while (done_ < split_.size()) next(done_);
}

namespace {

// For each tensor the stage of a pipeline that writes it if its ranks have it whole: the first one that has it.
std::map<std::string, int64_t> writing_stages(const CheckpointGroup& local, const TensorLayout& layout) {
  std::map<std::string, int64_t> stages;
  if (layout.stages.size() == 1) return stages;
  for (const StagedTensor& tensor : staged(local, layout)) stages[tensor.name] = tensor.stage;
  return stages;
}

}  // namespace

RankTensors own_tensors(const std::vector<CheckpointGroup>& local, const TensorLayout& layout) {
  RankTensors own;
  for (const CheckpointGroup& group : local) {
    CheckpointGroup whole{.name = group.name, .tensors = {}}, pieces{.name = group.name, .tensors = {}};
    const std::map<std::string, int64_t> stages = writing_stages(group, layout);
    for (const CheckpointTensor& tensor : group.tensors) {
      const SplitTensor split(tensor, layout);
      const auto stage = stages.find(tensor.name);
      const bool is_own = stage == stages.end() || stage->second == layout.stages.group_rank();
      if (split.is_whole() && (stage == stages.end() || stage->second == 0)) {
        whole.tensors.push_back(tensor);
      } else if (!is_own || !split.is_written_here()) {
        continue;  // an earlier stage or another rank writes it
      } else if (split.is_whole()) {
        pieces.tensors.push_back(tensor);
      } else if (tensor.value.numel() > 0) {
        pieces.tensors.push_back(tensor);
        pieces.tensors.back().piece = split.place();
        pieces.tensors.back().placement = "pieces";
      }
    }
    own.whole.push_back(std::move(whole));
    own.pieces.push_back(std::move(pieces));
  }
  return own;
}

CheckpointGroup fitting_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout) {
  CheckpointGroup fitting{.name = local.name, .tensors = {}};
  const auto& stored = checkpoint.index().tensors;
  for (const CheckpointTensor& tensor : local.tensors) {
    const auto record = stored.find(stored_name(local.name, tensor.name));
    if (record == stored.end()) continue;
    const SplitTensor split(tensor, layout);
    const std::vector<int64_t> shape = split.is_whole() ? tensor.value.sizes().vec() : split.whole_shape();
    const bool fits =
        record->second.shape == shape && record->second.dtype == dtype_name(stored_dtype(tensor.value.scalar_type()));
    if (fits) fitting.tensors.push_back(tensor);
  }
  return fitting;
}

void read_parts(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout) {
  checkpoint.check_group(with_other_stages(local, layout, at::kMeta));
  read_tensors(checkpoint, local, layout);
}

void read_tensors(const Checkpoint& checkpoint, const CheckpointGroup& local, const TensorLayout& layout) {
  for (const CheckpointTensor& tensor : local.tensors) {
    const std::string name = stored_name(local.name, tensor.name);
    const SplitTensor split(tensor, layout);
    const at::Tensor part =
        tensor.store ? at::empty_like(tensor.value, tensor.value.options(), at::MemoryFormat::Preserve) : tensor.value;
    if (split.is_whole()) {
      checkpoint.read_into(name, part);
    } else {
      split.read(checkpoint, name, part);
    }
    if (tensor.store) tensor.store(part);
  }
}

}  // namespace welkin::train
