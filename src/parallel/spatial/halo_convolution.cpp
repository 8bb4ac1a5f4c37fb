// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/halo_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "parallel/spatial/halo_exchange.h"

namespace welkin::parallel {
namespace {

at::Tensor placed(const HaloPiece& piece, const std::vector<at::Tensor>& needed, const PlaceKernel& place) {
  Cells padding{};
  for (size_t a = 0; a < kSpaceAxes; ++a) padding[a] = piece.placement[a].padding;
  at::Tensor made = place(needed, padding);
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    const int64_t dim = kFirstSpaceDim + static_cast<int64_t>(a);
    const int64_t skip = piece.placement[a].skip, wanted = piece.made.axes[a].size();
    if (made.size(dim) != wanted) made = made.narrow(dim, skip, wanted);
  }
  return made;
}

// For a member without cells at this scale. Its sends, and weights that others use, still depend on its gradients.
at::Tensor nothing(const HaloPlan& plan, const at::Tensor& like, int64_t channels, const at::Tensor& token,
                   const std::vector<at::Tensor>& weights) {
  const Cells extent = plan.made.extent();
  at::Tensor link = token.sum();
  for (const at::Tensor& weight : weights) link = link + weight.narrow(0, 0, 0).sum().to(link.scalar_type());
  return at::zeros({like.size(0), channels, extent[0], extent[1], extent[2]}, like.options().requires_grad(false)) + link;
}

}  // namespace

at::Tensor halo_convolution(const Group& group, const std::shared_ptr<const HaloPlan>& plan, const std::vector<at::Tensor>& x,
                            const std::vector<at::Tensor>& weights, int64_t channels, const PlaceKernel& place) {
  const auto turn = std::make_shared<HaloTurn>(group, plan);
  const OpenedBlock block = open_block(turn, x);
  std::vector<at::Tensor> made;
  if (plan->has_interior) made.push_back(placed(plan->pieces.front(), block.interior, place));  // while halos are in flight
  const std::vector<at::Tensor> strips = fill_strips(turn, block.token);
  for (size_t first = 0; first < strips.size(); first += x.size()) {
    const auto begin = strips.begin() + static_cast<std::ptrdiff_t>(first);
    made.push_back(placed(plan->pieces[made.size()], {begin, begin + static_cast<std::ptrdiff_t>(x.size())}, place));
  }
  if (made.empty()) return nothing(*plan, x.front(), channels, block.token, weights);
  return join_pieces(turn, made);
}

}  // namespace welkin::parallel
