// SPDX-License-Identifier: Apache-2.0
#include "plan/layouts.h"

#include <algorithm>
#include <tuple>

#include "core/text.h"

namespace welkin::plan {
namespace {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= number; ++d) {
    if (number % d == 0) all.push_back(d);
  }
  return all;
}

std::string spatial_text(const std::array<int64_t, 3>& blocks) { return cat(blocks[0], "x", blocks[1], "x", blocks[2]); }

// d >= h >= w: rows of blocks are as long as they can be.
std::array<int64_t, 3> compact_blocks(int64_t count) {
  std::array<int64_t, 3> best{count, 1, 1};
  const auto surface = [](const std::array<int64_t, 3>& b) { return b[0] + b[1] + b[2]; };
  for (const int64_t d : divisors(count)) {
    for (const int64_t h : divisors(count / d)) {
      const std::array<int64_t, 3> blocks{d, h, count / d / h};
      if (d >= h && h >= blocks[2] && surface(blocks) < surface(best)) best = blocks;
    }
  }
  return best;
}

// No blocks, boxes cut into compact blocks, fields into bands of rows.
std::vector<std::array<int64_t, 3>> ways_to_cut(int64_t count) {
  if (count == 1) return {{1, 1, 1}};
  return {compact_blocks(count), {1, count, 1}};
}

bool is_wanted(const LayoutSpace& space, const LayoutChoice& layout, const std::vector<std::string>& keys) {
  for (const auto& [key, value] : layout.settings()) {
    if (std::ranges::find(keys, key) == keys.end()) continue;
    if (const auto given = space.given(key); given && *given != value) return false;
  }
  return true;
}

std::vector<std::string> choices(const LayoutSpace& space, const char* key, std::vector<std::string> usual) {
  if (const auto given = space.given(key)) return {*given};
  return usual;
}

}  // namespace

bool LayoutChoice::has_same_mesh(const LayoutChoice& other) const {
  const auto mesh = [](const LayoutChoice& of) {
    return std::tuple(of.dp, of.tp, of.cp, of.pp, of.blocks, of.sequence_parallel);
  };
  return mesh(*this) == mesh(other);
}

std::vector<std::pair<std::string, std::string>> LayoutChoice::settings() const {
  std::vector<std::pair<std::string, std::string>> all{{"tensor_parallel", cat(tp)},
                                                       {"context_parallel", cat(cp)},
                                                       {"pipeline_parallel", cat(pp)},
                                                       {"spatial", spatial_text(blocks)},
                                                       {"sequence_parallel", sequence_parallel ? "true" : "false"},
                                                       {"shard", shard},
                                                       {"activation_checkpointing", checkpointing},
                                                       {"pipeline_schedule", schedule}};
  if (micro_batch > 0) all.emplace_back("micro_batch_size", cat(micro_batch));
  return all;
}

std::string LayoutChoice::flags() const {
  const std::vector<std::pair<std::string, std::string>> usual = LayoutChoice().settings();
  std::string text;
  for (const auto& setting : settings()) {
    if (std::ranges::find(usual, setting) == usual.end())
      text += cat(text.empty() ? "" : " ", "--set ", setting.first, "=", setting.second);
  }
  return text;
}

std::string LayoutChoice::text() const {
  std::string text = cat("dp ", dp);
  if (tp > 1) text += cat(", tp ", tp, sequence_parallel ? " with sp" : "");
  if (cp > 1) text += cat(", cp ", cp);
  if (num_blocks() > 1) text += cat(", blocks ", spatial_text(blocks));
  if (pp > 1) text += cat(", pp ", pp, " ", schedule);
  if (shard != "none") text += cat(", shard ", shard);
  if (checkpointing != "none") text += cat(", recompute ", checkpointing);
  if (micro_batch > 0) text += cat(", micro-batch ", micro_batch);
  return text;
}

std::vector<LayoutChoice> meshes(const LayoutSpace& space) {
  const std::vector<std::string> axes{"tensor_parallel", "context_parallel", "pipeline_parallel", "spatial", "sequence_parallel"};
  std::vector<LayoutChoice> all;
  const auto add = [&](const LayoutChoice& layout) {
    const bool is_new = std::ranges::none_of(all, [&](const LayoutChoice& each) { return each.settings() == layout.settings(); });
    if (is_new && is_wanted(space, layout, axes)) all.push_back(layout);
  };
  for (const int64_t tp : divisors(space.node_devices)) {
    for (const int64_t parts : divisors(space.devices / tp)) {
      for (const int64_t pp : divisors(space.devices / tp / parts)) {
        LayoutChoice layout{.dp = space.devices / tp / parts / pp, .tp = tp, .cp = parts, .pp = pp};
        for (const bool sequence : {false, true}) {
          layout.sequence_parallel = sequence;
          if (sequence && tp == 1) continue;
          add(layout);
        }
        layout.cp = 1, layout.sequence_parallel = false;
        for (const auto& blocks : ways_to_cut(parts)) {
          layout.blocks = blocks;
          add(layout);
        }
      }
    }
  }
  return all;
}

std::vector<LayoutChoice> variants(const LayoutSpace& space, const LayoutChoice& mesh) {
  std::vector<LayoutChoice> all;
  const bool has_replicas = mesh.dp > 1;
  for (const std::string& shard :
       choices(space, "shard",
               has_replicas ? std::vector<std::string>{"none", "optimizer", "full"} : std::vector<std::string>{"none"})) {
    for (const std::string& part : choices(space, "activation_checkpointing", {"none", "blocks"})) {
      for (const std::string& schedule :
           choices(space, "pipeline_schedule",
                   mesh.pp > 1 ? std::vector<std::string>{"1f1b", "zero_bubble"} : std::vector<std::string>{"1f1b"})) {
        LayoutChoice layout = mesh;
        layout.shard = shard, layout.checkpointing = part, layout.schedule = schedule;
        all.push_back(layout);
      }
    }
  }
  return all;
}

}  // namespace welkin::plan
