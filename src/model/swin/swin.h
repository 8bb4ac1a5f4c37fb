// SPDX-License-Identifier: Apache-2.0
// The Swin transformer on fields of the globe: patches in, tokens through blocks of window attention (swin_block.h) at one
// resolution, patches out. There is no position embedding: the attention bias depends on latitude.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/base/model.h"
#include "model/layers/patch_embed.h"
#include "model/swin/swin_block.h"
#include "model/swin/swin_options.h"

namespace welkin::model {

class Swin : public Model {
 public:
  explicit Swin(const SwinOptions& options);

  // (B, in_channels, height, width) -> (B, out_channels, height, width). With `residual`, the newest input step is added.
  at::Tensor forward(const at::Tensor& input, const ForwardContext& context) override;
  std::vector<Site*> sites() override;
  std::vector<Segment> segments() override;  // one per block; the first embeds, the last makes the output
  void pretty_print(std::ostream& stream) const override { stream << "SwinTransformer"; }

 private:
  at::Tensor embed(const at::Tensor& input) const;
  at::Tensor output_of(const at::Tensor& x_BND, const at::Tensor& input) const;

  SwinOptions options_;
  Site tokens_in_, tokens_out_;
  std::shared_ptr<PatchEmbed> patch_embed_;
  std::shared_ptr<LayerList<SwinBlock>> blocks_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace welkin::model
