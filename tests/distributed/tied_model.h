// SPDX-License-Identifier: Apache-2.0
// A small model with tied weights of every kind: a layer that works in several places under one name, one that is registered
// under two, and a weight that projects in and, transposed, out, of which its site knows the first use alone.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/base/init.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/layers/patch_embed.h"
#include "ops/gemm/linear_cost.h"
#include "train/learn/registries.h"

namespace welkin::tests {

using model::Tensors;

// x W, at a site, and x W^T outside of it.
class Lift : public model::Layer {
 public:
  Lift(std::string path, int64_t width) : Layer(std::move(path)), site_(this->path()) {
    weight_ = register_parameter("weight", at::empty({width, width}));
  }
  at::Tensor forward(const at::Tensor& x_BND) const {
    return site_({x_BND}, [this](Tensors in) { return Tensors{at::matmul(in.at(0), weight_)}; }).at(0);
  }
  at::Tensor back(const at::Tensor& x_BND) const { return at::matmul(x_BND, weight_.t()); }
  std::vector<model::Site*> own_sites() override { return {&site_}; }
  void initialise(uint64_t seed) override { model::fill_normal(weight_, seed, path_of("weight"), 0.1); }

 private:
  model::Site site_;
  at::Tensor weight_;
};

// x + down(gelu(up(norm(x))))
class TiedNetLayer : public model::Layer {
 public:
  TiedNetLayer(std::string path, int64_t width)
      : Layer(std::move(path)),
        in_(path_of("in")),
        norm_(add<model::LayerNorm>("norm", width)),
        up_(add<model::Linear>("up", width, 2 * width)),
        down_(add<model::Linear>("down", 2 * width, width)) {}
  at::Tensor forward(const at::Tensor& x_BND) const {
    const at::Tensor entered = in_({norm_->forward(x_BND)}, [](Tensors in) { return in; }).at(0);
    return x_BND.add(down_->forward(at::gelu(up_->forward(entered))));
  }
  std::vector<model::Site*> sites() override { return {norm_->own_sites()[0], &in_, up_->own_sites()[0], down_->own_sites()[0]}; }

 private:
  model::Site in_;
  std::shared_ptr<model::LayerNorm> norm_;
  std::shared_ptr<model::Linear> up_, down_;
};

// In four segments: `mix` works in the first, the third and the last, where it has another name; `lift` in the first and the
// last.
class TiedNet : public model::Model {
 public:
  TiedNet(const config::ModelConfig& config, const model::ModelShape& shape)
      : patch_(config.patch_size), rows_(shape.grid[0] / patch_), tokens_in_("tokens.in"), tokens_out_("tokens.out") {
    embed_ = add<model::PatchEmbed>("embed", shape.in_channels, config.embed_dim, patch_);
    mix_ = add<model::Linear>("mix", config.embed_dim, config.embed_dim);
    lift_ = add<Lift>("lift", config.embed_dim);
    layers_ = add<model::LayerList<TiedNetLayer>>("layers");
    for (int64_t i = 0; i < config.depth; ++i) layers_->append(config.embed_dim);
    head_ = add<model::Linear>("head", config.embed_dim, patch_ * patch_ * shape.out_channels);
    register_module("mix_again", mix_);
  }

  at::Tensor forward(const at::Tensor& x_BCHW, const model::ForwardContext& context) override {
    Tensors x;
    for (const model::Segment& segment : segments()) x = segment.run(std::move(x), x_BCHW, context);
    return x.at(0);
  }

  std::vector<model::Segment> segments() override {
    std::vector<model::Segment> segments;
    const size_t depth = layers_->layers().size();
    for (size_t i = 0; i < depth; ++i) {
      const bool is_first = i == 0, is_middle = i == depth / 2, is_last = i + 1 == depth;
      const auto run = [=, this](Tensors in, const at::Tensor& x_BCHW, const model::ForwardContext& /*context*/) {
        at::Tensor x_BND = layers_->layers()[i]->forward(is_first ? first(x_BCHW) : in.at(0));
        if (is_middle) x_BND = x_BND + mix_->forward(x_BND);
        return Tensors{is_last ? last(x_BND) : x_BND};
      };
      segments.push_back(
          {.name = layers_->layers()[i]->path(), .layers = {layers_->layers()[i]->path()}, .run = run, .reads_input = is_first});
    }
    for (const char* path : {"embed", "mix", "lift"}) segments.front().layers.emplace_back(path);
    segments[depth / 2].layers.emplace_back("mix_again");
    for (const char* path : {"mix_again", "lift", "head"}) segments.back().layers.emplace_back(path);
    return segments;
  }

  std::vector<model::Site*> sites() override {
    std::vector<model::Site*> sites{embed_->own_sites()[0], &tokens_in_, mix_->own_sites()[0], lift_->own_sites()[0]};
    for (model::Site* site : layers_->sites()) sites.push_back(site);
    sites.insert(sites.end(), {&tokens_out_, head_->own_sites()[0]});
    return sites;
  }

 private:
  at::Tensor first(const at::Tensor& x_BCHW) const {
    const at::Tensor x_BND = tokens_in_({embed_->forward(x_BCHW)}, [](Tensors in) { return in; }).at(0);
    const at::Tensor mixed_BND = x_BND + mix_->forward(x_BND);
    return mixed_BND + lift_->forward(mixed_BND);
  }
  at::Tensor last(const at::Tensor& x_BND) const {
    const at::Tensor mixed_BND = x_BND + mix_->forward(x_BND);
    const at::Tensor out_BND = tokens_out_({mixed_BND + lift_->back(mixed_BND)}, [](Tensors in) { return in; }).at(0);
    return model::unpatchify(head_->forward(out_BND), rows_, patch_);
  }

  int64_t patch_, rows_;
  model::Site tokens_in_, tokens_out_;
  std::shared_ptr<model::PatchEmbed> embed_;
  std::shared_ptr<model::Linear> mix_, head_;
  std::shared_ptr<Lift> lift_;
  std::shared_ptr<model::LayerList<TiedNetLayer>> layers_;
};

inline model::ModelEntry tied_model() {
  model::ModelEntry entry;
  entry.build = [](const config::ModelConfig& config, const model::ModelShape& shape) -> model::ModelPtr {
    return std::make_shared<TiedNet>(config, shape);
  };
  entry.cost = [](const config::ModelConfig& config, const model::ModelShape& shape) {  // all parameters; work of layers alone
    model::ModelCost sum;
    const int64_t width = config.embed_dim, cells = config.patch_size * config.patch_size;
    sum.add({.name = "embed", .parameters = cells * shape.in_channels * width + width});
    sum.add({.name = "mix", .parameters = width * width + width});
    sum.add({.name = "lift", .parameters = width * width});
    for (int64_t i = 0; i < config.depth; ++i) {
      const std::string path = "layers." + std::to_string(i);
      sum.add({.name = path + ".norm", .parameters = 2 * width});
      sum.add(model::layer_cost(path + ".up", ops::linear_cost(1, width, 2 * width, model::kFloatBytes), 2 * width * width,
                                2 * width, false));
      sum.add({.name = path + ".down", .parameters = 2 * width * width + width});
    }
    sum.add({.name = "head", .parameters = (width + 1) * cells * shape.out_channels});
    return sum;
  };
  return entry;
}

inline parallel::Plan tied_plan(const config::ModelConfig& config, const model::ModelShape& shape, const parallel::Mesh& /*mesh*/,
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

inline void add_tied_model(train::Registries& registries) {
  registries.models.add("tied", tied_model());
  registries.plans.add("tied", {tied_plan});
}

}  // namespace welkin::tests
