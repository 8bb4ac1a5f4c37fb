// SPDX-License-Identifier: Apache-2.0
// What probes need: configurations whose activations are most of their memory, with the shapes of their samples, on one rank.
#pragma once

#include "data/sample/dataset.h"
#include "parallel/comm/world.h"
#include "parallel/mesh/run_mesh.h"
#include "train/step/layout.h"

namespace welkin::train {

inline const RunLength kProbeLength{.total_steps = 16, .steps_per_epoch = 16, .samples = 16};

inline config::RunConfig probe_config() {
  config::RunConfig config;
  config.loss.loss = "relative_l2";
  config.optimizer.betas = {0.9, 0.95};
  config.optimizer.lr = config.schedule.start_lr = 1e-3;
  config.schedule.schedule = "cosine";
  config.loop.global_batch_size = 4;
  config.loop.num_iters = 16;
  config.loop.threads = 1;
  config.loop.seed = 3;
  return config;
}

inline config::RunConfig probe_vit() {
  config::RunConfig config = probe_config();
  config.model.model = "vit";
  config.model.embed_dim = 48;
  config.model.depth = 3;
  config.model.num_heads = 4;
  config.model.patch_size = 4;
  config.model.dropout = 0.1;
  config.model.img_size = {16, 32};
  return config;
}

inline config::RunConfig probe_unet() {
  config::RunConfig config = probe_config();
  config.model.model = "unet3d";
  config.model.width = 8;
  config.model.scales = 3;
  return config;
}

inline data::SampleSpec fields_spec() {
  data::SampleSpec spec;
  spec.input = spec.target = {{"u", "v"}, {"m s-1", "m s-1"}, {2, 16, 32}};
  spec.geometry = data::Geometry::Sphere;
  return spec;
}

inline data::SampleSpec boxes_spec() {
  data::SampleSpec spec;
  spec.input = spec.target = {{"rho", "T"}, {"1", "K"}, {2, 16, 16, 16}};
  return spec;
}

struct ProbeBed {
  ProbeBed(config::RunConfig with, data::SampleSpec of) : config(std::move(with)), spec(std::move(of)) {
    add_builtins(registries);
    const auto make = [](const std::string& name, parallel::GroupMembers members) {
      return parallel::World().group(name, std::move(members));
    };
    layout = make_layout({make, 0, parallel::mesh_of(config.parallel, 1)}, source());
  }
  SetupSource source() const { return {config, registries, spec}; }

  config::RunConfig config;
  data::SampleSpec spec;
  Registries registries;
  Layout layout;
};

}  // namespace welkin::train
