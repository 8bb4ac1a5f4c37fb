// SPDX-License-Identifier: Apache-2.0
// The exchange of halos with its gradient, as two nodes around the interior's work. The first sends own cells and hands out the
// interior's, the second waits for the halos and hands out the strips that need them. Backward runs the other way round: the
// strips' gradients are sent home first, the interior's backward pass runs meanwhile, and the first node adds all up.
// Boxes are (B, C, D, H, W), one or several with the same block. Differentiable once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "parallel/comm/collectives.h"
#include "parallel/spatial/halo_plan.h"

namespace welkin::parallel {

// One exchange, forward and back. Both nodes share it.
class HaloTurn {
 public:
  HaloTurn(Group group, std::shared_ptr<const HaloPlan> plan) : group_(std::move(group)), plan_(std::move(plan)) {}

  const HaloPlan& plan() const { return *plan_; }

  void start(const std::vector<at::Tensor>& x);  // sends own cells
  // For each piece but the interior the cells that it needs, of each box: halos, own cells, and zeros beyond the border.
  std::vector<at::Tensor> finish();
  // Between the passes strips have no memory: own cells are in x, which is kept anyway, and the halos are kept as they came.
  void release_strips();
  void restore_strips();

  // `strips`: gradients of what finish() gave; undefined ones are none. The halos' go home.
  void start_back(const std::vector<at::Tensor>& strips);
  // Gradients of what came in at start(), from those of the interior (none: an empty list).
  std::vector<at::Tensor> finish_back(const std::vector<at::Tensor>& interior);

 private:
  // Cells under way between this member and another: of each box of the message, of each tensor, one after the other.
  struct Parcel {
    const HaloMessage* message = nullptr;
    at::Tensor cells;
  };
  struct Meta {  // of a tensor that came in
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    at::MemoryFormat format;
  };

  std::vector<Parcel> parcels_for(const std::vector<HaloMessage>& messages) const;
  Transfer send(const std::vector<Parcel>& going, const std::vector<Parcel>& coming) const;
  void fill(const std::vector<at::Tensor>& strips, bool with_halos) const;
  size_t first_strip() const { return plan_->has_interior ? 1 : 0; }
  void add_strip_cells(const std::vector<at::Tensor>& strips, size_t tensor, const Block& block, const at::Tensor& to) const;

  Group group_;
  std::shared_ptr<const HaloPlan> plan_;
  std::vector<Meta> metas_;
  std::vector<at::Tensor> x_;
  std::vector<at::Tensor> made_strips_;  // over the same storages, whose changes here are none of those that autograd knows
  std::vector<Parcel> going_, coming_;
  Transfer transfer_;
  std::vector<Parcel> halos_;       // that came in the forward pass
  std::vector<at::Tensor> strips_;  // gradients, until they are added
  bool goes_back_ = false, is_released_ = false;
};

// x -> the interior of each (none where the plan has none), and a token that stands for what is under way.
struct OpenedBlock {
  std::vector<at::Tensor> interior;
  at::Tensor token;
};
OpenedBlock open_block(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& x);

// The strips, piece by piece; within a piece tensor by tensor.
std::vector<at::Tensor> fill_strips(const std::shared_ptr<HaloTurn>& turn, const at::Tensor& token);

// What the pieces of the plan made, (B, C, extents of the piece) each, as one. The strips get their memory back before the
// pieces' backward passes.
at::Tensor join_pieces(const std::shared_ptr<HaloTurn>& turn, const std::vector<at::Tensor>& made);

}  // namespace welkin::parallel
