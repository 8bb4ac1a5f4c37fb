// SPDX-License-Identifier: Apache-2.0
// A small model trained in float64 under a layout, for three clipped steps; under two, with a checkpoint between them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "parallel/shard/param_table.h"
#include "verify/layouts/layout_check.h"

namespace welkin::verify {

// The values of one rank after training: first the whole-sample values, then its parameters.
struct LayoutRun {
  std::vector<double> losses;
  at::Tensor output, input_gradient;  // of this rank's samples in the first step
  std::vector<at::Tensor> gradients;  // of the first step, complete, by row
  std::vector<at::Tensor> weights;    // after the last step, by row
  at::Tensor sent;  // (rows): if gradients travel in fewer bits, the sum over ranks of the largest element that each sends
  parallel::ParamTable table;
};

// Every rank of the groups calls it with the same case.
LayoutRun train_under(const LayoutSubject& subject, const LayoutCase& c, const parallel::MeshGroups& groups, c10::Device device);

// A layout with its groups.
struct PlacedLayout {
  const LayoutCase& layout;
  const parallel::MeshGroups& groups;
};

// Runs the first step under one layout, saves a checkpoint with its weights and momenta in `folder`, and runs the other steps
// under the layout that reads it. The result has only the losses of all steps and the last weights. Every rank of `world` calls
// it; all see the folder.
LayoutRun train_moved(const LayoutSubject& subject, const PlacedLayout& before, const PlacedLayout& after,
                      const parallel::Group& world, const std::filesystem::path& folder, c10::Device device);

// The largest absolute value.
double magnitude(const at::Tensor& values);

}  // namespace welkin::verify
