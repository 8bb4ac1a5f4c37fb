// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/model_parallel_gradients.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"

namespace welkin::parallel {
namespace {

AxisSet over_if(AxisSet set, AxisSet axes, bool condition) { return condition ? set | axes : set; }

// Parameters whose gradients are reduced alike.
struct GradientKind {
  AxisSet over;          // axes that do not split the parameter
  int64_t complete = 1;  // members per complete gradient: the factor by which the sum over `over` is too large
  std::vector<at::Tensor> gradients;
};

std::vector<GradientKind> kinds_of(const ParamTable& table, const Mesh& mesh, AxisSet axes) {
  std::vector<GradientKind> kinds;
  for (const ParamRow& row : table.rows()) {
    if (!row.gradient().defined()) continue;
    GradientKind kind;
    for (const Axis axis : {Axis::Tp, Axis::Cp}) {
      if (row.placements[axis].sharded() || mesh.size(axis) == 1 || !axes.contains(axis)) continue;
      kind.over = kind.over | axis;
      if (!row.partial_over.contains(axis)) kind.complete *= mesh.size(axis);
    }
    if (kind.over == AxisSet()) continue;
    auto same = std::find_if(kinds.begin(), kinds.end(), [&](const GradientKind& known) {
      return known.over == kind.over && known.complete == kind.complete;
    });
    if (same == kinds.end()) same = kinds.insert(kinds.end(), kind);
    same->gradients.push_back(row.gradient());
  }
  return kinds;
}

// In place; scales each tensor first.
void sum_in_one_message(const Group& group, const std::vector<at::Tensor>& tensors, double scale) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  at::Tensor buffer = at::cat(flat);
  if (scale != 1.0) buffer.mul_(scale);
  all_reduce_in_place(group, buffer);
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(buffer.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

// The axes over which a rank's part of a parameter is replicated.
AxisSet replicated_over(const ParamRow& row) {
  AxisSet axes = Axis::DpReplicate;
  axes = over_if(axes, Axis::DpShard, !row.is_released);
  axes = over_if(axes, Axis::Tp, !row.placements[Axis::Tp].sharded());
  return over_if(axes, kSampleParts, !row.placements[Axis::Cp].sharded() && !(row.is_released && row.is_split_over_cp));
}

// Rows whose values are compared within one group.
struct ReplicaKind {
  Group group;
  std::vector<size_t> rows;
};

std::vector<ReplicaKind> replicas_of(const ParamTable& table, const MeshGroups& groups) {
  std::vector<std::pair<AxisSet, std::vector<size_t>>> by_axes;
  std::vector<ReplicaKind> kinds;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    const ParamRow& row = table.rows()[i];
    const AxisSet axes = replicated_over(row);
    auto same = std::find_if(by_axes.begin(), by_axes.end(), [&](const auto& kind) { return kind.first == axes; });
    if (same == by_axes.end()) same = by_axes.insert(by_axes.end(), {axes, {}});
    same->second.push_back(i);
    if (row.holders.size() > 1) kinds.push_back({row.holders, {i}});
  }
  for (auto& [axes, rows] : by_axes) kinds.push_back({groups.along(axes), std::move(rows)});
  return kinds;
}

}  // namespace

void reduce_model_parallel_gradients(const ParamTable& table, const MeshGroups& groups, AxisSet axes) {
  for (const GradientKind& kind : kinds_of(table, groups.mesh(), axes)) {
    sum_in_one_message(groups.along(kind.over), kind.gradients, 1.0 / static_cast<double>(kind.complete));
  }
}

// A parameter that this step has not used here may have a gradient on another stage.
void sum_tied_gradients(const ParamTable& table) {
  const at::NoGradGuard no_grad;
  for (const ParamRow& row : table.rows()) {
    const at::Tensor& trained = row.trained();
    if (row.holders.size() == 1 || !row.local.requires_grad() || trained.numel() == 0) continue;
    if (!trained.grad().defined()) trained.mutable_grad() = at::zeros_like(trained, at::MemoryFormat::Preserve);
    all_reduce_in_place(row.holders, memory_of(trained.grad()));
  }
}

void sum_gradients(const ParamTable& table, const Group& group) {
  std::vector<at::Tensor> gradients;
  for (const ParamRow& row : table.rows()) {
    if (row.gradient().defined()) gradients.push_back(row.gradient());
  }
  if (group.size() > 1) sum_in_one_message(group, gradients, 1.0);
}

at::Tensor global_square_norm(const ParamTable& table, const std::vector<at::Tensor>& values, const MeshGroups& groups,
                              const Group& shards) {
  WELKIN_CHECK(values.size() == table.rows().size(), "one value per row");
  const at::NoGradGuard no_grad;
  at::Tensor whole, split;  // sums for replicated and for split parameters
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || !table.rows()[i].is_counted()) continue;
    const at::Tensor norm = values[i].norm();
    const at::Tensor square = (norm.scalar_type() == at::kDouble ? norm : norm.to(at::kFloat)).square();
    at::Tensor& sum = table.rows()[i].placements[Axis::Tp].sharded() ? split : whole;
    sum = sum.defined() ? sum + square : square;
  }
  if (shards.size() > 1) {  // every member has equally many rows of each kind
    for (at::Tensor* sum : {&whole, &split}) {
      if (sum->defined()) *sum = all_reduce(shards, *sum);
    }
  }
  if (split.defined()) {
    split = all_reduce(groups.along(Axis::Tp), split);
    whole = whole.defined() ? whole + split : split;
  }
  return whole.defined() ? whole : at::zeros({}, at::kFloat);
}

at::Tensor sum_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const at::Tensor& numbers,
                          const MeshGroups& groups, const Group& shards) {
  WELKIN_CHECK(numbers.dim() == 2 && numbers.size(1) == static_cast<int64_t>(rows.size()), "one column per row");
  const at::NoGradGuard no_grad;
  at::Tensor whole = shards.size() > 1 ? all_reduce(shards, numbers) : numbers;
  std::vector<at::Tensor> split;
  std::vector<int64_t> columns;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!table.rows()[rows[i]].placements[Axis::Tp].sharded()) continue;
    columns.push_back(static_cast<int64_t>(i));
    split.push_back(whole.select(1, columns.back()));
  }
  if (split.empty()) return whole;
  const at::Tensor sums = all_reduce(groups.along(Axis::Tp), at::stack(split, 1));
  whole = whole.clone();
  for (size_t i = 0; i < columns.size(); ++i) {
    whole.select(1, columns[i]).copy_(sums.select(1, static_cast<int64_t>(i)));
  }
  return whole;
}

namespace {

// Sums all values in one message.
void add_up(const Group& group, const std::vector<at::Tensor>& values) {
  if (values.empty() || group.size() == 1) return;
  std::vector<at::Tensor> flat;
  std::vector<int64_t> lengths;
  for (const at::Tensor& value : values) {
    flat.push_back(value.view({-1}));
    lengths.push_back(value.numel());
  }
  const std::vector<at::Tensor> sums = all_reduce(group, at::cat(flat)).split_with_sizes(lengths);
  for (size_t i = 0; i < flat.size(); ++i) flat[i].copy_(sums[i]);
}

}  // namespace

void add_over_parts(const ParamTable& table, const std::vector<size_t>& rows, const std::vector<at::Tensor>& values,
                    const MeshGroups& groups, const Group& shards) {
  WELKIN_CHECK(values.size() == rows.size(), "one tensor per row");
  const at::NoGradGuard no_grad;
  add_up(shards, values);
  std::vector<at::Tensor> split;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (table.rows()[rows[i]].placements[Axis::Tp].sharded()) split.push_back(values[i]);
  }
  add_up(groups.along(Axis::Tp), split);
}

namespace {

// Finds the ranks of a group whose hash differs from the majority's; all ranks if there is no majority.
ReplicaDifference judged(const std::string& parameter, const Group& group, const at::Tensor& hashes) {
  std::vector<int64_t> own(hashes.const_data_ptr<int64_t>(), hashes.const_data_ptr<int64_t>() + hashes.numel());
  ReplicaDifference difference{.parameter = parameter, .ranks = {}, .num_replicas = group.size(), .has_majority = false};
  const auto count = [&](int64_t hash) { return std::ranges::count(own, hash); };
  const int64_t most = *std::ranges::max_element(own, {}, count);
  difference.has_majority = 2 * count(most) > group.size();
  for (int64_t place = 0; place < group.size(); ++place) {
    if (difference.has_majority && own[static_cast<size_t>(place)] == most) continue;
    difference.ranks.push_back(group.ranks()[static_cast<size_t>(place)]);
  }
  return difference;
}

std::string text_of(const ReplicaDifference& difference) {
  const std::string ranks = cat("parameter=", difference.parameter, ", ranks=[", join(difference.ranks, ", "), "]");
  if (!difference.has_majority) return cat(ranks, ", of which nobody can tell who is right");
  const auto others = difference.num_replicas - static_cast<int64_t>(difference.ranks.size());
  return cat(ranks, " against the ", others, " others that hold it");
}

}  // namespace

// Clears the top bit, so that a hash and its negative are both int64.
// On a GPU the hash is a sum of the bits, which any one flipped bit changes. It needs one pass over the values and no copy.
int64_t hash_of_values(const at::Tensor& values) {
  if (values.is_cuda()) {
    const int64_t bytes = values.element_size();
    const at::ScalarType whole = bytes == 8 ? at::kLong : bytes == 4 ? at::kInt : bytes == 2 ? at::kShort : at::kChar;
    return values.detach().contiguous().view(whole).sum(at::kLong).item<int64_t>();
  }
  const at::Tensor host = values.detach().contiguous().cpu();
  const std::span bytes(static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
  return static_cast<int64_t>(xxh3_64(bytes) >> 1);
}

std::vector<size_t> rows_with_replicas(const ParamTable& table, const MeshGroups& groups) {
  std::set<size_t> found;
  for (const auto& [group, rows] : replicas_of(table, groups)) {
    if (group.size() > 1) found.insert(rows.begin(), rows.end());
  }
  return {found.begin(), found.end()};
}

ReplicaHashes replica_hashes(const ParamTable& table, const MeshGroups& groups) {
  ReplicaHashes hashes(table.rows().size(), 0);
  for (const size_t number : rows_with_replicas(table, groups)) {
    const ParamRow& row = table.rows()[number];
    hashes[number] = hash_of_values(row.read ? row.read() : row.is_released ? row.shard : row.local);
  }
  return hashes;
}

std::optional<ReplicaDifference> find_replica_difference(const ParamTable& table, const MeshGroups& groups,
                                                         const ReplicaHashes& own_hashes) {
  WELKIN_CHECK(own_hashes.size() == table.rows().size(), "one hash per row");
  std::optional<size_t> first_row;
  std::optional<ReplicaDifference> difference;
  for (const auto& [group, rows] : replicas_of(table, groups)) {
    if (group.size() == 1) continue;
    at::Tensor hashes = at::zeros({1, static_cast<int64_t>(rows.size())}, at::kLong);
    auto* own = hashes.data_ptr<int64_t>();
    for (size_t i = 0; i < rows.size(); ++i) own[i] = own_hashes[rows[i]];
    const at::Tensor all = all_gather(group, hashes, 0, Lengths(static_cast<size_t>(group.size()), 1));
    const at::Tensor differs = all.ne(all[0]).any(0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto column = static_cast<int64_t>(i);
      if (!differs[column].item<bool>() || (first_row && *first_row < rows[i])) continue;
      first_row = rows[i];
      difference = judged(table.rows()[rows[i]].name, group, all.select(1, column).contiguous());
    }
  }
  return difference;
}

void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when) {
  check_replicas(table, groups, when, replica_hashes(table, groups));
}

void check_replicas(const ParamTable& table, const MeshGroups& groups, const std::string& when, const ReplicaHashes& own) {
  const auto difference = find_replica_difference(table, groups, own);
  // Every rank stops, even if its own groups agree.
  const at::Tensor any = at::full({1}, difference ? int64_t{1} : int64_t{0}, at::kLong);
  all_reduce_in_place(groups.along(kDp | Axis::Tp | kSampleParts), any, Reduction::Max);
  all_reduce_in_place(groups.along(Axis::Pp), any, Reduction::Max);
  if (any.item<int64_t>() == 0) return;
  throw ReplicasDiffer(
      "parallel",
      difference ? cat("replicas of a parameter differ ", when, ": ", text_of(*difference))
                 : cat("replicas differ on other ranks ", when),
      "Continue with --resume: replicas are compared before each checkpoint, so what is saved is good. Where a rank is "
      "named again, take its host out of the job and have it tested");
}

}  // namespace welkin::parallel
