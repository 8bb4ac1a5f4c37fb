// SPDX-License-Identifier: Apache-2.0
#include "parallel/spatial/halo_convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "parallel/spatial/halo_exchange.h"

namespace welkin::parallel {
namespace {

ops::PiecePlacement placement_of(const HaloPiece& piece) {
  ops::PiecePlacement placement;
  for (size_t a = 0; a < kSpaceAxes; ++a) {
    placement.padding[a] = piece.placement[a].padding;
    placement.padding_end[a] = piece.placement[a].padding_end;
  }
  return placement;
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
                            const std::vector<at::Tensor>& weights, int64_t channels, const ops::PieceKernel& kernel) {
  const auto turn = std::make_shared<HaloTurn>(group, plan);
  const OpenedBlock block = open_block(turn, x);
  const bool is_one = plan->pieces.size() == 1;
  at::Tensor memory;
  if (!is_one && !plan->made.empty() && kernel.memory) memory = kernel.memory(x, plan->made.extent());
  std::vector<at::Tensor> made;
  const auto place = [&](const std::vector<at::Tensor>& needed) {
    const HaloPiece& piece = plan->pieces[made.size()];
    ops::PiecePlacement placement = placement_of(piece);
    placement.activates = is_one || memory.defined();
    if (memory.defined()) placement.into = cut(memory, plan->made, piece.made);
    made.push_back(kernel.place(needed, placement));
  };
  if (plan->has_interior) place(block.interior);  // while halos are in flight
  const std::vector<at::Tensor> strips = fill_strips(turn, block.token);
  for (size_t first = 0; first < strips.size(); first += x.size()) {
    const auto begin = strips.begin() + static_cast<std::ptrdiff_t>(first);
    place({begin, begin + static_cast<std::ptrdiff_t>(x.size())});
  }
  if (made.empty()) return nothing(*plan, x.front(), channels, block.token, weights);
  at::Tensor joined = join_pieces(turn, made, memory);
  return is_one || memory.defined() || !kernel.activate ? joined : kernel.activate(std::move(joined));
}

}  // namespace welkin::parallel
