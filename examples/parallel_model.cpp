// SPDX-License-Identifier: Apache-2.0
// A model of one's own on many ranks: residual layers on patches, written for one device, and a plan that splits it over tp and
// cp.
//   welkin --plugin build/release/examples/libparallel_model.so verify --layouts --model parallel_model
// compares every layout with one process; expected: each line ends in "ok". Training takes --tensor_parallel as the ViT does.
#include <ATen/ops/gelu.h>

#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/patch_embed.h"
#include "ops/gemm/linear_cost.h"
#include "train/learn/registries.h"

namespace {

using namespace welkin;
using model::Tensors;

Tensors pass(Tensors in) { return in; }

// x + down(gelu(up(norm(x)))). The site "in" is where x enters the part that is split by columns.
class WideLayer : public model::Layer {
 public:
  WideLayer(std::string path, int64_t width, int64_t hidden)
      : Layer(std::move(path)),
        in_(path_of("in")),
        norm_(add<model::LayerNorm>("norm", width)),
        up_(add<model::Linear>("up", width, hidden)),
        down_(add<model::Linear>("down", hidden, width)) {}

  at::Tensor forward(const at::Tensor& x_BND) const {
    const at::Tensor entered = in_({norm_->forward(x_BND)}, pass).at(0);
    return x_BND.add(down_->forward(at::gelu(up_->forward(entered))));
  }

  // In the order of the forward pass: the norm stands before the split part.
  std::vector<model::Site*> sites() override { return {norm_->own_sites()[0], &in_, up_->own_sites()[0], down_->own_sites()[0]}; }

 private:
  model::Site in_;
  std::shared_ptr<model::LayerNorm> norm_;
  std::shared_ptr<model::Linear> up_, down_;
};

class PatchNet : public model::Model {
 public:
  PatchNet(const config::ModelConfig& config, const model::ModelShape& shape)
      : patch_(config.patch_size), rows_(shape.grid[0] / patch_), tokens_in_("tokens.in"), tokens_out_("tokens.out") {
    embed_ = add<model::PatchEmbed>("embed", shape.in_channels, config.embed_dim, patch_);
    layers_ = add<model::LayerList<WideLayer>>("layers");
    for (int64_t i = 0; i < config.depth; ++i) layers_->append(config.embed_dim, 2 * config.embed_dim);
    head_ = add<model::Linear>("head", config.embed_dim, patch_ * patch_ * shape.out_channels);
  }

  at::Tensor forward(const at::Tensor& x_BCHW, const model::ForwardContext& /*context*/) override {
    at::Tensor x_BND = first(x_BCHW);
    for (const auto& layer : layers_->layers()) x_BND = layer->forward(x_BND);
    return last(x_BND);
  }

  // Where a pipeline may cut it: between its layers.
  std::vector<model::Segment> segments() override {
    std::vector<model::Segment> segments;
    const size_t depth = layers_->layers().size();
    for (size_t i = 0; i < depth; ++i) {
      const auto run = [this, i, depth](Tensors in, const at::Tensor& x_BCHW, const model::ForwardContext& /*context*/) {
        const at::Tensor x_BND = layers_->layers()[i]->forward(i == 0 ? first(x_BCHW) : in.at(0));
        return Tensors{i + 1 == depth ? last(x_BND) : x_BND};
      };
      segments.push_back(
          {.name = layers_->layers()[i]->path(), .layers = {layers_->layers()[i]->path()}, .run = run, .reads_input = i == 0});
    }
    segments.front().layers.emplace_back("embed");
    segments.back().layers.emplace_back("head");
    return segments;
  }

  std::vector<model::Site*> sites() override {
    std::vector<model::Site*> sites{embed_->own_sites()[0], &tokens_in_};
    for (model::Site* site : layers_->sites()) sites.push_back(site);
    sites.insert(sites.end(), {&tokens_out_, head_->own_sites()[0]});
    return sites;
  }

 private:
  at::Tensor first(const at::Tensor& x_BCHW) const { return tokens_in_({embed_->forward(x_BCHW)}, pass).at(0); }
  at::Tensor last(const at::Tensor& x_BND) const {
    return model::unpatchify(head_->forward(tokens_out_({x_BND}, pass).at(0)), rows_, patch_);
  }

  int64_t patch_, rows_;
  model::Site tokens_in_, tokens_out_;
  std::shared_ptr<model::PatchEmbed> embed_;
  std::shared_ptr<model::LayerList<WideLayer>> layers_;
  std::shared_ptr<model::Linear> head_;
};

// For MFU, `plan estimate` and `bench --layers`; names are those of the sites.
model::ModelCost cost(const config::ModelConfig& config, const model::ModelShape& shape) {
  const int64_t cells = config.patch_size * config.patch_size, width = config.embed_dim;
  const int64_t tokens = shape.grid[0] * shape.grid[1] / cells;
  const auto linear = [&](std::string name, int64_t in, int64_t out, bool of_input = false) {
    return model::layer_cost(std::move(name), ops::linear_cost(tokens, in, out, model::kFloatBytes), in * out, out, of_input);
  };
  model::ModelCost sum;
  sum.add(linear("embed", cells * shape.in_channels, width, /*of_input=*/true));
  for (int64_t i = 0; i < config.depth; ++i) {
    const std::string path = "layers." + std::to_string(i);
    sum.add({.name = path + ".norm", .parameters = 2 * width});
    sum.add(linear(path + ".up", width, 2 * width));
    sum.add(linear(path + ".down", 2 * width, width));
  }
  sum.add(linear("head", width, cells * shape.out_channels));
  return sum;
}

// The whole of its parallelism.
parallel::Plan plan(const config::ModelConfig& config, const model::ModelShape& shape, const parallel::Mesh& /*mesh*/,
                    const parallel::LayoutOptions& options) {
  using namespace parallel;
  const std::vector<Axis> axes = options.sequence_parallel ? std::vector{Axis::Cp, Axis::Tp} : std::vector{Axis::Cp};
  return {.num_tokens = (shape.grid[0] / config.patch_size) * (shape.grid[1] / config.patch_size),
          .rows = {{"tokens.in", SplitTokens{axes}},
                   {"layers.*.in", ColumnParallelInput{Axis::Tp}},
                   {"layers.*.up", ColumnParallel{Axis::Tp}},
                   {"layers.*.down", RowParallel{Axis::Tp}},
                   {"tokens.out", GatherTokens{axes}}}};
}

}  // namespace

extern "C" void welkin_register(train::Registries& registries) {
  registries.models.add("parallel_model",
                        {.build = [](const config::ModelConfig& config, const model::ModelShape& shape) -> model::ModelPtr {
                           return std::make_shared<PatchNet>(config, shape);
                         },
                         .cost = cost});
  registries.plans.add("parallel_model", {plan});
}
