// SPDX-License-Identifier: Apache-2.0
#include "parallel/sharding/whole_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "parallel/comm/collectives.h"
#include "parallel/shard/shards.h"

namespace welkin::parallel {
namespace {

// A round makes as many wholes as there are ranks: index k % shards of the pieces, and index k / shards of tp, make the k-th.
class WholeRound {
 public:
  WholeRound(const ParamTable& table, const std::vector<size_t>& rows, const Group& shards, const Group* tp,
             const WholeWork& work)
      : table_(table), rows_(rows), shards_(shards), tp_(tp), work_(work) {}

  void run(const std::vector<size_t>& items) {
    items_ = items;
    mine_.clear();
    for (size_t k = 0; k < items_.size(); ++k) {
      if (shard_of_item(k) == shards_.group_rank()) mine_.push_back(items_[k]);
    }
    return_pieces(changed_parts(own_parts()));
  }

 private:
  const ParamRow& row(size_t item) const { return table_.rows()[rows_[item]]; }
  int64_t shard_of_item(size_t k) const { return static_cast<int64_t>(k) % shards_.size(); }

  at::Tensor like_parameter(size_t item, const at::TensorOptions& options) const {
    return at::empty_strided(row(item).local.sizes(), row(item).local.strides(), options);
  }

  // The pieces of all members for `mine_`, joined.
  std::vector<at::Tensor> own_parts() const {
    std::vector<at::Tensor> parts;
    if (shards_.size() == 1) {
      for (const size_t item : mine_) parts.push_back(work_.part(item));
      return parts;
    }
    std::vector<at::Tensor> leaving;
    Lengths to(static_cast<size_t>(shards_.size()), 0), from(to);
    for (int64_t place = 0; place < shards_.size(); ++place) {
      for (size_t k = 0; k < items_.size(); ++k) {
        if (shard_of_item(k) != place) continue;
        leaving.push_back(work_.part(items_[k]).reshape({-1}));
        to[static_cast<size_t>(place)] += leaving.back().numel();
      }
      for (const size_t item : mine_) from[static_cast<size_t>(place)] += row(item).split.numel(place);
    }
    const at::Tensor arrived = exchange_runs(shards_, at::cat(leaving), to, from);
    for (const size_t item : mine_) parts.push_back(like_parameter(item, arrived.options()));
    int64_t next = 0;
    for (int64_t place = 0; place < shards_.size(); ++place) {
      for (size_t i = 0; i < mine_.size(); ++i) {
        const MemorySplit& split = row(mine_[i]).split;
        const int64_t count = split.numel(place);
        memory_of(parts[i]).narrow(0, split.offset(place), count).copy_(arrived.narrow(0, next, count));
        next += count;
      }
    }
    return parts;
  }

  // The parts of `mine_` of the body's results; this rank makes at most one whole.
  std::vector<at::Tensor> changed_parts(const std::vector<at::Tensor>& parts) const {
    if (tp_ == nullptr) {
      std::vector<at::Tensor> changed;
      for (size_t i = 0; i < mine_.size(); ++i) changed.push_back(work_.body(mine_[i], parts[i]));
      return changed;
    }
    if (mine_.empty()) return {};  // a last round of few parameters; nor have the others of this tp group any
    const auto size = static_cast<size_t>(tp_->size()), place = static_cast<size_t>(tp_->group_rank());
    const bool has_one = place < mine_.size();
    Lengths each(size, 0);
    for (size_t i = 0; i < parts.size(); ++i) each[i] = parts[i].numel();
    const Lengths own(size, has_one ? parts[place].numel() : 0);
    std::vector<at::Tensor> leaving;
    for (const at::Tensor& part : parts) leaving.push_back(part.reshape({-1}));
    const at::Tensor arrived = exchange_runs(*tp_, at::cat(leaving), each, own);
    const at::Tensor returned = exchange_runs(*tp_, has_one ? changed_whole(place, arrived) : arrived, own, each);
    std::vector<at::Tensor> changed;
    int64_t next = 0;
    for (const at::Tensor& part : parts) {
      changed.push_back(returned.narrow(0, next, part.numel()).view(part.sizes()));
      next += part.numel();
    }
    return changed;
  }

  // (parts of all members, one after the other) -> the same for the body's result on the whole.
  at::Tensor changed_whole(size_t i, const at::Tensor& arrived) const {
    const ParamRow& own = row(mine_[i]);
    const Placement& placement = own.placements[Axis::Tp];
    const Shard split{placement.dim(), placement.parts()};
    std::vector<at::Tensor> parts;
    for (const at::Tensor& part : arrived.view({tp_->size(), -1}).unbind(0)) parts.push_back(part.view(own.local.sizes()));
    const at::Tensor whole = work_.body(mine_[i], join_shards(parts, split));
    for (int64_t member = 0; member < tp_->size(); ++member) {
      parts[static_cast<size_t>(member)] = shard_of(whole, split, member, tp_->size()).reshape({-1});
    }
    return at::cat(parts);
  }

  void return_pieces(const std::vector<at::Tensor>& changed) const {
    if (shards_.size() == 1) {
      for (size_t i = 0; i < mine_.size(); ++i) work_.take(mine_[i], changed[i]);
      return;
    }
    std::vector<at::Tensor> ordered;
    for (size_t i = 0; i < mine_.size(); ++i) {
      ordered.push_back(memory_of(like_parameter(mine_[i], changed[i].options()).copy_(changed[i])));
    }
    std::vector<at::Tensor> leaving;
    Lengths to(static_cast<size_t>(shards_.size()), 0), from(to);
    for (int64_t place = 0; place < shards_.size(); ++place) {
      for (size_t i = 0; i < mine_.size(); ++i) {
        const MemorySplit& split = row(mine_[i]).split;
        leaving.push_back(ordered[i].narrow(0, split.offset(place), split.numel(place)));
        to[static_cast<size_t>(place)] += split.numel(place);
      }
      for (size_t k = 0; k < items_.size(); ++k) {
        if (shard_of_item(k) == place) from[static_cast<size_t>(place)] += row(items_[k]).shard.numel();
      }
    }
    const auto options = row(items_.front()).local.options().requires_grad(false);
    const at::Tensor arrived = exchange_runs(shards_, leaving.empty() ? at::empty({0}, options) : at::cat(leaving), to, from);
    int64_t next = 0;
    for (int64_t place = 0; place < shards_.size(); ++place) {
      for (size_t k = 0; k < items_.size(); ++k) {
        if (shard_of_item(k) != place) continue;
        const at::Tensor& shard = row(items_[k]).shard;
        work_.take(items_[k], arrived.narrow(0, next, shard.numel()).view(shard.sizes()));
        next += shard.numel();
      }
    }
  }

  const ParamTable& table_;
  const std::vector<size_t>& rows_;
  const Group& shards_;
  const Group* tp_;  // null if tp does not split these rows
  const WholeWork& work_;
  std::vector<size_t> items_;
  std::vector<size_t> mine_;  // rows that this rank and its peers along tp make
};

}  // namespace

// Large ones come first, so that those of a round have about the same size.
void each_whole(const ParamTable& table, const std::vector<size_t>& rows, const MeshGroups& groups, const Group& shards,
                const WholeWork& work) {
  const at::NoGradGuard no_grad;
  const Group& tp = groups.along(Axis::Tp);
  for (const bool is_split : {false, true}) {
    std::vector<size_t> items;
    for (size_t item = 0; item < rows.size(); ++item) {
      if ((tp.size() > 1 && table.rows()[rows[item]].placements[Axis::Tp].sharded()) == is_split) items.push_back(item);
    }
    std::ranges::stable_sort(items, std::greater(), [&](size_t item) { return table.rows()[rows[item]].local.numel(); });
    WholeRound round(table, rows, shards, is_split ? &tp : nullptr, work);
    const auto most = static_cast<size_t>(shards.size() * (is_split ? tp.size() : 1));
    for (size_t first = 0; first < items.size(); first += most) {
      const size_t end = std::min(items.size(), first + most);
      round.run({items.begin() + static_cast<std::ptrdiff_t>(first), items.begin() + static_cast<std::ptrdiff_t>(end)});
    }
  }
}

}  // namespace welkin::parallel
