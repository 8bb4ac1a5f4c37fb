// SPDX-License-Identifier: Apache-2.0
// Trains a small model under a layout and compares loss, output, input gradient, every weight gradient and the weights after
// some steps with one process. In float64, so that a difference is an error of the layout and not rounding. Gradients that
// travel in fewer bits may differ within the error of these bits.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/registry.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/plans/plans.h"
#include "verify/layouts/layout_case.h"

namespace welkin::verify {

struct LayoutReport {
  LayoutCase layout;
  std::optional<LayoutCase> after{};  // the layout that continued from the checkpoint of `layout`
  std::string refused{};              // the plan's reason against such a layout, which was not run then; empty: it was
  double worst = 0;                   // relative error (maximum over maximum), the largest over tensors and ranks
  std::string worst_name{};           // the tensor with it: "gradient of blocks.0.attn.q.weight"
  int64_t num_tensors = 0;
  double seconds = 0;
  bool passed() const;
  std::string text() const;  // of the layout or both
};

// The model under test, built small: for fields of 20 x 28 points width 32 and 8 heads, for boxes of 8^3 cells width 8 and three
// scales.
struct LayoutSubject {
  model::ModelEntry model;
  parallel::PlanEntry plan;
};

// The axes that its plan splits, and pp if the model names its segments.
parallel::AxisSet axes_of(const LayoutSubject& subject);

// The plan's reason against a layout; empty if it takes it.
std::string refusal_of(const LayoutSubject& subject, const LayoutCase& c);

// This rank, and access to its groups.
struct LayoutRanks {
  int64_t rank = 0;
  parallel::MakeGroup make_group;
  c10::Device device = at::kCPU;  // for runs under layouts; the single process computes on a CPU
  parallel::Group world{};        // of all ranks: for checkpoints, and to compute the runs of one process once
};

using OnReport = std::function<void(const LayoutReport&)>;

// Every rank calls it with the same cases and gets the verdict of all ranks. `report` is called after each case, on every
// rank.
std::vector<LayoutReport> check_layouts(const LayoutSubject& subject, const LayoutRanks& ranks,
                                        const std::vector<LayoutCase>& cases, const OnReport& report);

// The same for checkpoints that go from one layout to another, through a folder that all ranks see, which is removed.
std::vector<LayoutReport> check_moves(const LayoutSubject& subject, const LayoutRanks& ranks,
                                      const std::vector<LayoutMove>& moves, const std::filesystem::path& folder,
                                      const OnReport& report);

}  // namespace welkin::verify
