// SPDX-License-Identifier: Apache-2.0
// Reference cases that are exact: the axis order of patches, parameter counts, process groups, splits of a length.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "goldens.h"
#include "model/patch_embed.h"
#include "model/registry.h"
#include "parallel/mesh.h"
#include "parallel/split.h"
#include "train/reference/model_case.h"

namespace welkin::parity {
namespace {

using Json = nlohmann::json;

// The folders of a kind; a test of a kind that is absent skips.
std::vector<std::filesystem::path> cases_of_kind(const std::string& kind) {
  std::vector<std::filesystem::path> found;
  for (const auto& folder : golden_cases()) {
    if (train::reference::case_kind(folder) == kind) found.push_back(folder);
  }
  return found;
}

Json read_json(const std::filesystem::path& path) { return Json::parse(read_file(path, uint64_t{1} << 26)); }

TEST(UnpatchifyCases, AxisOrderIsExact) {
  const auto cases = cases_of_kind("unpatchify");
  if (cases.empty()) GTEST_SKIP() << "no unpatchify case at " << goldens_folder();
  for (const auto& folder : cases) {
    const Json meta = read_json(folder / "meta.json");
    const train::reference::StoredTensors data(folder / "data.safetensors");
    const int64_t patch = meta.at("patch_size").get<int64_t>();
    const int64_t width = meta.at("embed_dim").get<int64_t>();
    const int64_t rows = meta.at("img_size").at(0).get<int64_t>() / patch;
    model::PatchEmbed embed("patch_embed", meta.at("channels").get<int64_t>(), width, patch);
    const at::NoGradGuard no_grad;
    auto parameters = embed.named_parameters();
    parameters["proj.weight"].copy_(at::eye(width).view_as(parameters["proj.weight"]));
    parameters["proj.bias"].zero_();
    const at::Tensor tokens = embed.forward(data.get("image"));
    EXPECT_TRUE(at::equal(tokens, data.get("tokens")));
    EXPECT_TRUE(at::equal(model::unpatchify(tokens, rows, patch), data.get("image_from_tokens_identity_head")));
    const at::Tensor permuted = tokens.matmul(data.get("perm_head_weight").t());
    EXPECT_TRUE(at::equal(model::unpatchify(permuted, rows, patch), data.get("image_from_tokens_perm_head")));
    EXPECT_TRUE(at::equal(model::unpatchify(data.get("counting_tokens"), rows, patch),
                          data.get("image_from_counting_tokens_identity_head")));
  }
}

int64_t count_parameters(const std::string& name, const config::ModelConfig& config, const model::ModelShape& shape) {
  model::Registry registry;
  model::add_builtin_models(registry);
  int64_t total = 0;
  for (const at::Tensor& parameter : registry.at(name).build(config, shape)->parameters()) total += parameter.numel();
  return total;
}

// The distributions are tested in tests/unit/model/initial_test.cpp; the counts here.
TEST(InitialisationCases, ParameterCounts) {
  const auto cases = cases_of_kind("initialisation");
  if (cases.empty()) GTEST_SKIP() << "no initialisation case at " << goldens_folder();
  for (const auto& folder : cases) {
    const Json counts = read_json(folder / "meta.json").at("parameter_counts");
    const model::ModelShape box{.in_channels = 4, .out_channels = 5, .grid = {64, 64, 64}};
    config::ModelConfig config;
    EXPECT_EQ(count_parameters("unet3d", config, box), counts.at("unet full_scale").get<int64_t>());
    config.full_scale = false;
    EXPECT_EQ(count_parameters("unet3d", config, box), counts.at("unet not full_scale").get<int64_t>());
    const model::ModelShape fields{.in_channels = 20, .out_channels = 20, .grid = {360, 720}};
    for (const char* qkv : {"joint", "separate"}) {
      config::ModelConfig vit;
      vit.qkv = qkv;
      int64_t wanted = 0;
      for (const auto& [name, count] : counts.items()) {
        if (name.starts_with("vit 360x720")) wanted = count.get<int64_t>();
      }
      EXPECT_EQ(count_parameters("vit", vit, fields), wanted) << qkv;
    }
  }
}

parallel::AxisSet axes_of(const std::string& name) {
  parallel::AxisSet axes;
  if (name.find("tp") != std::string::npos) axes = axes | parallel::AxisSet(parallel::Axis::Tp);
  if (name.find("cp") != std::string::npos) axes = axes | parallel::AxisSet(parallel::Axis::Cp);
  if (name.find("pp") != std::string::npos) axes = axes | parallel::AxisSet(parallel::Axis::Pp);
  if (name.find("dp") != std::string::npos) axes = axes | parallel::kDp;
  return axes;
}

TEST(RankGroupCases, EveryGroupIsExact) {
  const auto cases = cases_of_kind("rank_groups");
  if (cases.empty()) GTEST_SKIP() << "no rank_groups case at " << goldens_folder();
  for (const auto& folder : cases) {
    const Json groups = read_json(folder / "groups.json");
    for (const Json& entry : groups.at("cases")) {
      const auto size = [&](const char* axis) { return entry.at(axis).get<int64_t>(); };
      const std::string order = entry.at("order").get<std::string>();
      const parallel::MeshSizes sizes{.dp_replicate = size("dp"), .tp = size("tp"), .cp = size("cp"), .pp = size("pp")};
      if (entry.contains("error")) {
        EXPECT_THROW(parallel::Mesh(order, sizes), ConfigError) << order;
        continue;
      }
      const parallel::Mesh mesh(order, sizes);
      EXPECT_EQ(mesh.world_size(), size("world_size"));
      EXPECT_EQ(mesh.order(), entry.at("order_completed").get<std::string>());
      for (const auto& [name, wanted] : entry.at("groups").items()) {
        EXPECT_EQ(mesh.groups(axes_of(name)), wanted.get<std::vector<std::vector<int64_t>>>()) << order << " " << name;
      }
    }
  }
}

TEST(SplitCases, TutorialRuleIsExactAndTheBalancedOneIsBetter) {
  const auto cases = cases_of_kind("splits");
  if (cases.empty()) GTEST_SKIP() << "no splits case at " << goldens_folder();
  for (const auto& folder : cases) {
    const Json splits = read_json(folder / "splits.json");
    for (const Json& entry : splits.at("cases")) {
      const int64_t size = entry.at("size").get<int64_t>();
      const int64_t parts = entry.at("parts").get<int64_t>();
      if (entry.at("has_empty_part").get<bool>()) {
        EXPECT_THROW(parallel::tutorial_split(size, parts), ConfigError) << size << " over " << parts;
        continue;
      }
      EXPECT_EQ(parallel::tutorial_split(size, parts), entry.at("sections").get<std::vector<int64_t>>());
      const auto balanced = parallel::balanced_split(size, parts);
      EXPECT_EQ(parallel::split_offset(balanced, parts), size);
      EXPECT_LE(balanced.front() - balanced.back(), std::min<int64_t>(1, entry.at("max_minus_min").get<int64_t>()));
    }
  }
}

}  // namespace
}  // namespace welkin::parity
