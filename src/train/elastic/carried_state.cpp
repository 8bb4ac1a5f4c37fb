// SPDX-License-Identifier: Apache-2.0
#include "train/elastic/carried_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstring>
#include <utility>

#include "core/error.h"
#include "parallel/comm/collectives.h"

namespace welkin::train {
namespace {

// The larger vote wins: it orders by step, then by lowest rank. 0: this rank carries nothing.
int64_t vote_of(const parallel::World& world, const CarriedState* own) {
  if (own == nullptr) return 0;
  return (own->index.position.iteration + 1) * world.size() + (world.size() - 1 - world.rank());
}

// Returns the root's text on every rank.
std::string shared_text(const parallel::Group& group, const std::string& own, int64_t root) {
  if (group.size() == 1) return own;
  const at::Tensor length = at::full({1}, static_cast<int64_t>(own.size()), at::kLong);
  parallel::broadcast(group, length, root);
  const at::Tensor bytes = at::empty({length.item<int64_t>()}, at::kByte);
  if (group.group_rank() == root) std::memcpy(bytes.mutable_data_ptr(), own.data(), own.size());
  parallel::broadcast(group, bytes, root);
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

void share_tensor(const parallel::Group& group, const std::string& name, const at::Tensor& target, const CarriedState* own,
                  int64_t root) {
  at::Tensor values;
  if (group.group_rank() == root) {
    const auto found = own->tensors.find(name);
    WELKIN_CHECK(found != own->tensors.end() && found->second.sizes() == target.sizes(), "a run keeps its tensors");
    values = found->second;
  } else {
    values = at::empty(target.sizes(), at::TensorOptions(target.scalar_type()));
  }
  if (group.size() > 1 && values.numel() > 0) parallel::broadcast(group, values, root);
  target.copy_(values);
}

}  // namespace

std::unique_ptr<CarriedState> carry_state(const std::vector<CheckpointGroup>& groups, CheckpointIndex index) {
  const at::NoGradGuard no_grad;
  auto state = std::make_unique<CarriedState>();
  state->index = std::move(index);
  for (const CheckpointGroup& group : groups) {
    for (const CheckpointTensor& tensor : group.tensors) {
      if (tensor.fetch) return {};
      at::Tensor copy = at::empty(tensor.value.sizes(), at::TensorOptions(tensor.value.scalar_type()));
      copy.copy_(tensor.value);
      state->tensors[stored_name(group.name, tensor.name)] = std::move(copy);
    }
  }
  return state;
}

std::optional<SharedState> share_state(const parallel::World& world, const CarriedState* own,
                                       const std::vector<CheckpointGroup>& groups) {
  const at::NoGradGuard no_grad;
  const parallel::Group& group = world.world_group();
  int64_t best = vote_of(world, own);
  if (group.size() > 1) {
    best = parallel::all_reduce(group, at::full({1}, best, at::kLong), parallel::Reduction::Max).item<int64_t>();
  }
  if (best == 0) return {};
  const int64_t root = world.size() - 1 - best % world.size();
  const std::string index = shared_text(group, own != nullptr ? to_json(own->index) : std::string(), root);
  for (const CheckpointGroup& part : groups) {
    for (const CheckpointTensor& tensor : part.tensors) {
      share_tensor(group, stored_name(part.name, tensor.name), tensor.value, own, root);
    }
  }
  return SharedState{.index = parse_checkpoint_index(index, "the memory of a rank"), .rank = root};
}

}  // namespace welkin::train
