// SPDX-License-Identifier: Apache-2.0
// The vision transformer on fields: patches in, tokens through pre-norm blocks, patches out; no class token, no final activation.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/model.h"
#include "model/layers/patch_embed.h"
#include "model/vit/vit_block.h"
#include "model/vit/vit_options.h"

namespace welkin::model {

class Vit : public Model {
 public:
  explicit Vit(const VitOptions& options);

  // (B, in_channels, height, width) -> (B, out_channels, height, width). With `residual`, the newest input step is added. If
  // wrappers at its sites take parts of a field, input and output are whole rows of patches.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  void initialise(uint64_t seed) override;
  std::vector<Site*> sites() override;
  std::vector<Segment> segments() override;  // one per block; the first embeds, the last makes the output
  void pretty_print(std::ostream& stream) const override { stream << "Vit"; }

 private:
  at::Tensor embed(const at::Tensor& input, const ForwardContext& context) const;
  at::Tensor output_of(const at::Tensor& x_BND, const at::Tensor& input) const;

  VitOptions options_;
  Site positions_, tokens_in_, tokens_out_;
  at::Tensor pos_embed_;  // (1, N, D)
  std::shared_ptr<PatchEmbed> patch_embed_;
  std::shared_ptr<Dropout> pos_drop_;
  std::shared_ptr<LayerList<VitBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace welkin::model
