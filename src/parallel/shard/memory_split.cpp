// SPDX-License-Identifier: Apache-2.0
#include "parallel/shard/memory_split.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace welkin::parallel {
namespace {

// With it a member's piece exceeds the mean by less than a thirty-second.
constexpr int64_t kRowsPerMember = 32;

// Extents of the dims with more than one element, outermost in memory first.
std::vector<int64_t> extents_in_memory(const at::Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.size(dim) != 1) dims.push_back(dim);
  }
  std::ranges::stable_sort(dims, std::greater(), [&](int64_t dim) { return tensor.stride(dim); });
  std::vector<int64_t> extents;
  for (const int64_t dim : dims) extents.push_back(tensor.size(dim));
  return extents;
}

}  // namespace

MemorySplit::MemorySplit(const at::Tensor& tensor, int64_t members, int64_t block)
    : members_(members), elements_(tensor.numel()), rows_(1), is_flat_(block > 1) {
  WELKIN_CHECK(members >= 1 && tensor.is_non_overlapping_and_dense(), "a dense tensor is cut for at least one member");
  if (is_flat_) {
    rows_ = (elements_ + block - 1) / block;
    row_size_ = block;
    return;
  }
  const std::vector<int64_t> extents = extents_in_memory(tensor);
  auto next = extents.begin();
  const auto is_fine = [&] { return rows_ % members == 0 || rows_ >= kRowsPerMember * members; };
  while (next != extents.end() && (next == extents.begin() || !is_fine())) rows_ *= *next++;
  row_shape_.assign(next, extents.end());
  row_size_ = std::accumulate(row_shape_.begin(), row_shape_.end(), int64_t{1}, std::multiplies());
}

int64_t MemorySplit::offset(int64_t member) const {
  return std::min(elements_, row_size_ * (member * (rows_ / members_) + std::min(member, rows_ % members_)));
}

std::vector<int64_t> MemorySplit::shape(int64_t member) const {
  if (is_flat_) return {numel(member)};
  std::vector<int64_t> shape{rows_of(member)};
  shape.insert(shape.end(), row_shape_.begin(), row_shape_.end());
  return shape;
}

at::Tensor MemorySplit::piece_of(const at::Tensor& memory, int64_t member) const {
  return memory.narrow(0, offset(member), numel(member)).view(shape(member));
}

at::Tensor memory_of(const at::Tensor& dense) {
  WELKIN_CHECK(dense.is_non_overlapping_and_dense(), "memory without gaps");
  const at::NoGradGuard no_grad;
  return at::as_strided(dense.detach(), {dense.numel()}, {1});
}

}  // namespace welkin::parallel
