// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/whole_tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "parallel/comm/collectives.h"
#include "parallel/shard/shards.h"

namespace welkin::train {
namespace {

// The row whose parameter this is, or goes with; null when it is not split.
const parallel::ParamRow* split_row(const std::string& name, const parallel::ParamTable& table) {
  const parallel::ParamRow* best = nullptr;
  for (const parallel::ParamRow& row : table.rows()) {
    const bool goes_with = name == row.name || name.ends_with("." + row.name);
    if (goes_with && (best == nullptr || row.name.size() > best->name.size())) best = &row;
  }
  return best != nullptr && best->placements[parallel::Axis::Tp].sharded() ? best : nullptr;
}

parallel::Shard shard_of_row(const parallel::ParamRow& row) {
  const parallel::Placement& placement = row.placements[parallel::Axis::Tp];
  return {placement.dim(), placement.parts()};
}

at::Tensor whole_of(const at::Tensor& local, const parallel::ParamRow& row, const parallel::Group& tp) {
  const at::Tensor stacked = all_gather(tp, local.detach().unsqueeze(0), 0, parallel::Lengths(static_cast<size_t>(tp.size()), 1));
  return parallel::join_shards(stacked.unbind(0), shard_of_row(row));
}

}  // namespace

CheckpointGroup gather_whole(const CheckpointGroup& local, const parallel::ParamTable& table,
                             const parallel::MeshGroups& groups) {
  const parallel::Group& tp = groups.along(parallel::Axis::Tp);
  CheckpointGroup whole = local;
  if (tp.size() == 1) return whole;
  for (CheckpointTensor& tensor : whole.tensors) {
    if (const auto* row = split_row(tensor.name, table)) tensor.value = whole_of(tensor.value, *row, tp);
  }
  return whole;
}

void cut_parts(const CheckpointGroup& whole, const CheckpointGroup& local, const parallel::ParamTable& table,
               const parallel::MeshGroups& groups) {
  const parallel::Group& tp = groups.along(parallel::Axis::Tp);
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < local.tensors.size(); ++i) {
    if (whole.tensors[i].value.is_same(local.tensors[i].value)) continue;
    const parallel::ParamRow* row = split_row(local.tensors[i].name, table);
    local.tensors[i].value.copy_(parallel::shard_of(whole.tensors[i].value, shard_of_row(*row), tp.group_rank(), tp.size()));
  }
}

void read_parts(const Checkpoint& checkpoint, const CheckpointGroup& local, const parallel::ParamTable& table,
                const parallel::MeshGroups& groups) {
  const parallel::Group& tp = groups.along(parallel::Axis::Tp);
  CheckpointGroup whole = local;
  if (tp.size() > 1) {
    for (CheckpointTensor& tensor : whole.tensors) {
      if (const auto* row = split_row(tensor.name, table)) {
        tensor.value = at::empty(row->global_shape, tensor.value.options().requires_grad(false));
      }
    }
  }
  checkpoint.read_group(whole);
  cut_parts(whole, local, table, groups);
}

}  // namespace welkin::train
