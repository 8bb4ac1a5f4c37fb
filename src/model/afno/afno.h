// SPDX-License-Identifier: Apache-2.0
// FourCastNet: patches in, tokens through blocks of adaptive Fourier filters (afno_block.h), patches out. Parameters have the
// names of FourCastNet's code. That code also has a last norm, which its forward pass does not use.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/afno/afno_block.h"
#include "model/afno/afno_options.h"
#include "model/base/model.h"
#include "model/layers/patch_embed.h"

namespace welkin::model {

class Afno : public Model {
 public:
  explicit Afno(const AfnoOptions& options);

  // (B, in_channels, height, width) -> (B, out_channels, height, width). With `residual`, the newest input step is added.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  void initialise(uint64_t seed) override;
  std::vector<Site*> sites() override;
  std::vector<Segment> segments() override;  // one per block; the first embeds, the last makes the output
  void pretty_print(std::ostream& stream) const override { stream << "AFNONet"; }

 private:
  at::Tensor embed(const at::Tensor& input, const ForwardContext& context) const;
  at::Tensor output_of(const at::Tensor& x_BND, const at::Tensor& input) const;

  AfnoOptions options_;
  Site positions_, tokens_in_, tokens_out_;
  at::Tensor pos_embed_;  // (1, N, D)
  std::shared_ptr<PatchEmbed> patch_embed_;
  std::shared_ptr<Dropout> pos_drop_;
  std::shared_ptr<LayerList<AfnoBlock>> blocks_;
  std::shared_ptr<Linear> head_;
};

}  // namespace welkin::model
