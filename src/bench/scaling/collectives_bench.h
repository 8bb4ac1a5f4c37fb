// SPDX-License-Identifier: Apache-2.0
// `welkin bench --collectives`: times every collective over every axis of the mesh, as the program calls them, at sizes from
// latency to bandwidth, and fits their ring formulas (link_model.h).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parallel/comm/mesh_groups.h"
#include "plan/link_model.h"

namespace welkin::bench {

struct CollectivesOptions {
  std::vector<int64_t> sizes{1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22};  // bytes of the whole, float32
  double seconds = 0.05;                                                    // per collective, axis and size; at least three calls
  c10::Device device = c10::kCPU;                                           // device of the tensors; it determines the links
};

struct CollectivesReport {
  std::string device;  // "cpu", "cuda"
  std::vector<plan::TimedCollective> times;
  std::vector<plan::LinkFit> fits;
};

// Every rank of the mesh calls it and has the same report. Axes of one rank are left out.
CollectivesReport run_collectives_bench(const parallel::MeshGroups& groups, const CollectivesOptions& options);

std::string collectives_text(const CollectivesReport& report);
// "collectives": all times; "calibration": the fits, which read_calibration() reads.
void add_collectives_json(nlohmann::ordered_json& json, const CollectivesReport& report);
// DataError if the file was not written by add_collectives_json().
std::vector<plan::LinkFit> read_calibration(const std::string& path);

}  // namespace welkin::bench
