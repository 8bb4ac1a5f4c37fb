// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/tree_sum.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "core/error.h"
#include "parallel/comm/collectives.h"

namespace welkin::parallel {
namespace {

at::Tensor packed(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  return at::cat(flat);
}

void unpack(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

// Left child + right child, level by level; the root is the first rank's.
void sum_over_ranks(const Group& group, const at::Tensor& flat) {
  const int64_t place = group.group_rank();
  for (int64_t stride = 1; stride < group.size(); stride *= 2) {
    if (place % (2 * stride) != 0) {
      start_send(group, flat, place - stride).wait();
      break;
    }
    const at::Tensor other = at::empty_like(flat);
    start_receive(group, other, place + stride).wait();
    flat.add_(other);
  }
  broadcast(group, flat, 0);
}

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

void TreeSum::add(std::vector<at::Tensor> unit) {
  nodes_.push_back({0, std::move(unit)});
  while (nodes_.size() > 1 && nodes_[nodes_.size() - 2].level == nodes_.back().level) merge_last_two();
}

void TreeSum::merge_last_two() {
  const at::NoGradGuard no_grad;
  const Node right = std::move(nodes_.back());
  nodes_.pop_back();
  Node& left = nodes_.back();
  for (size_t i = 0; i < left.sums.size(); ++i) left.sums[i].add_(right.sums[i]);
  ++left.level;
}

std::vector<at::Tensor> TreeSum::finish() {
  const at::NoGradGuard no_grad;
  WELKIN_CHECK(nodes_.size() == 1 && is_power_of_two(group_.size()), "a tree sum has a power of two of units and ranks");
  std::vector<at::Tensor> sums = std::move(nodes_.front().sums);
  nodes_.clear();
  if (group_.size() == 1) return sums;
  const at::Tensor flat = packed(sums);
  sum_over_ranks(group_, flat);
  unpack(flat, sums);
  return sums;
}

}  // namespace welkin::parallel
