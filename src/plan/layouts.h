// SPDX-License-Identifier: Apache-2.0
// The layouts that a search tries: how a run can be divided between devices. The caller finds out which of them a model allows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace welkin::plan {

struct LayoutChoice {
  int64_t dp = 1, tp = 1, cp = 1, pp = 1;
  std::array<int64_t, 3> blocks{1, 1, 1};  // d, h, w
  bool sequence_parallel = false;
  // As the configuration names them.
  std::string shard = "none", checkpointing = "none", schedule = "1f1b";
  int64_t micro_batch = 0;  // 0: not chosen

  int64_t num_blocks() const { return blocks[0] * blocks[1] * blocks[2]; }
  // The same division of the devices, sp included.
  bool has_same_mesh(const LayoutChoice& other) const;
  // Every key that a search chooses, by its flat name, with its value.
  std::vector<std::pair<std::string, std::string>> settings() const;
  // The flags of `welkin train`; usual values are left out.
  std::string flags() const;
  // "dp 4, tp 2 with sp, shard optimizer, micro-batch 4".
  std::string text() const;
};

struct LayoutSpace {
  int64_t devices = 1, node_devices = 1;
  // The user's value of a key: only that one is tried.
  std::function<std::optional<std::string>(const std::string& key)> given;
};

// Every division of the devices between the axes, tp within a node: with whole training state and without recomputation. Of the
// ways to cut a box into as many blocks it has the one with the least surface, and the one into slabs along h.
std::vector<LayoutChoice> meshes(const LayoutSpace& space);
// The same mesh with each way to share out the training state, to recompute, and to order a pipeline's passes.
std::vector<LayoutChoice> variants(const LayoutSpace& space, const LayoutChoice& mesh);

}  // namespace welkin::plan
