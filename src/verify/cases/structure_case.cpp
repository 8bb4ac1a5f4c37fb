// SPDX-License-Identifier: Apache-2.0
// Exact cases of structure: process groups, splits of a length, axis order of patches.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "model/layers/patch_embed.h"
#include "parallel/mesh/mesh.h"
#include "parallel/shard/split.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace structure_case {

using Json = nlohmann::json;

// "tp-cp" -> both axes. Unknown names: nothing.
std::optional<parallel::AxisSet> axes_of(const std::string& name) {
  parallel::AxisSet axes;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('-', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    if (word == "tp")
      axes = axes | parallel::AxisSet(parallel::Axis::Tp);
    else if (word == "cp")
      axes = axes | parallel::AxisSet(parallel::Axis::Cp);
    else if (word == "pp")
      axes = axes | parallel::AxisSet(parallel::Axis::Pp);
    else if (word == "dp")
      axes = axes | parallel::kDp;
    else
      return std::nullopt;
    begin = end + 1;
  }
  return axes;
}

template <typename Function>
bool is_refused(Function&& function) {
  try {
    function();
  } catch (const ConfigError&) {
    return true;
  }
  return false;
}

void verify_mesh(const Json& entry, Rows& rows) {
  const auto size = [&](const char* axis) { return entry.value(axis, int64_t{1}); };
  const auto order = entry.at("order").get<std::string>();
  const parallel::MeshSizes sizes{.dp_replicate = size("dp"), .tp = size("tp"), .cp = size("cp"), .pp = size("pp")};
  const std::string name = cat(order, " tp", sizes.tp, " cp", sizes.cp, " pp", sizes.pp, " dp", sizes.dp_replicate);
  constexpr double kMostRanks = 1 << 20;
  const double ranks = static_cast<double>(sizes.tp) * static_cast<double>(sizes.cp) * static_cast<double>(sizes.pp) *
                       static_cast<double>(sizes.dp_replicate);
  if (entry.contains("error")) {
    rows.push_back(compare_flag(name + " is refused", is_refused([&] { parallel::Mesh(order, sizes); }), "accepted"));
    return;
  }
  if (!(ranks >= 1 && ranks <= kMostRanks)) {
    rows.push_back(failed(name, cat("the number of ranks is out of range: ranks=", ranks)));
    return;
  }
  const parallel::Mesh mesh(order, sizes);
  if (entry.contains("world_size"))
    rows.push_back(
        compare_number(name + " world size", static_cast<double>(mesh.world_size()), entry.at("world_size").get<double>(), 0));
  if (entry.contains("order_completed")) {
    const auto wanted = entry.at("order_completed").get<std::string>();
    rows.push_back(compare_flag(name + " order", mesh.order() == wanted, cat("got=", mesh.order(), ", wanted=", wanted)));
  }
  for (const auto& [group, wanted] : entry.at("groups").items()) {
    const auto axes = axes_of(group);
    const bool equal = axes && mesh.groups(*axes) == wanted.get<std::vector<std::vector<int64_t>>>();
    rows.push_back(compare_flag(cat(name, " groups ", group), equal, axes ? "other groups" : "unknown axes"));
  }
}

void verify_split(const Json& entry, Rows& rows) {
  const auto size = entry.at("size").get<int64_t>();
  const auto parts = entry.at("parts").get<int64_t>();
  const std::string name = cat(size, " over ", parts);
  const auto wanted = entry.at("sections").get<std::vector<int64_t>>();
  if (parts != static_cast<int64_t>(wanted.size()) || parts < 1) {
    rows.push_back(failed(name, cat("wrong shape: parts=", parts, ", sections=", wanted.size())));
    return;
  }
  const auto [least, most] = std::ranges::minmax(wanted);
  if (entry.contains("max_minus_min"))
    rows.push_back(
        compare_number(name + " max_minus_min", static_cast<double>(most - least), entry.at("max_minus_min").get<double>(), 0));
  if (least <= 0) {
    const bool refused =
        is_refused([&] { parallel::tutorial_split(size, parts); }) && is_refused([&] { parallel::balanced_split(size, parts); });
    rows.push_back(compare_flag(name + " is refused: an empty part", refused, "accepted"));
    return;
  }
  const std::vector<int64_t> tutorial = parallel::tutorial_split(size, parts);
  rows.push_back(compare_flag("tutorial " + name, tutorial == wanted,
                              cat("got=[", join(tutorial, ","), "], wanted=[", join(wanted, ","), "]")));
  const std::vector<int64_t> balanced = parallel::balanced_split(size, parts);
  const bool even = balanced.front() - balanced.back() <= 1 && std::ranges::is_sorted(balanced, std::greater<>{});
  const bool whole = static_cast<int64_t>(balanced.size()) == parts && parallel::split_offset(balanced, parts) == size;
  rows.push_back(compare_flag(name + " balanced", even && whole, cat("got=[", join(balanced, ","), "]")));
}

void check_count(const CaseFolder& folder, const Json& cases, Rows& rows) {
  if (!folder.meta().contains("count")) return;
  rows.push_back(
      compare_number("number of entries", static_cast<double>(cases.size()), folder.meta().at("count").get<double>(), 0));
}

}  // namespace structure_case

Rows verify_rank_groups(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  const auto table = folder.json(folder.meta().value("file", std::string("groups.json")));
  for (const auto& entry : table.at("cases")) structure_case::verify_mesh(entry, rows);
  structure_case::check_count(folder, table.at("cases"), rows);
  return rows;
}

Rows verify_splits(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  const auto table = folder.json(folder.meta().value("file", std::string("splits.json")));
  for (const auto& entry : table.at("cases")) structure_case::verify_split(entry, rows);
  structure_case::check_count(folder, table.at("cases"), rows);
  return rows;
}

Rows verify_unpatchify(const CaseFolder& folder, const VerifyOptions& options) {
  Rows rows;
  const auto& meta = folder.meta();
  const StoredTensors& data = folder.need_tensors("data");
  const auto patch = meta.at("patch_size").get<int64_t>();
  const auto channels = meta.at("channels").get<int64_t>();
  const auto height = meta.at("img_size").at(0).get<int64_t>();
  const at::Tensor image = data.get("image").to(options.device);
  const auto width = meta.at("embed_dim").get<int64_t>();
  if (patch < 1 || image.dim() != 4 || image.size(1) != channels || image.size(2) != height ||
      width != channels * patch * patch || height % patch != 0) {
    throw DataError("reference",
                    cat("the image is not as stated: shape=", image.sizes(), ", channels=", channels, ", height=", height,
                        ", patch_size=", patch, ", embed_dim=", width),
                    "Correct the case's meta.json");
  }
  model::PatchEmbed embed("patch_embed", channels, width, patch);
  const at::NoGradGuard no_grad;
  auto parameters = embed.named_parameters();
  parameters["proj.weight"].copy_(at::eye(width).view_as(parameters["proj.weight"]));
  parameters["proj.bias"].zero_();
  embed.to(options.device);
  const at::Tensor tokens = embed.forward(image);
  const auto image_of = [&](const at::Tensor& values) { return model::unpatchify(values, height / patch, patch); };
  const auto compare = [&](const char* name, const at::Tensor& got) {
    if (data.contains(name)) rows.push_back(compare_exactly(name, got, data.get(name)));
  };
  compare("tokens", tokens);
  compare("image_from_tokens_identity_head", image_of(tokens));
  if (data.contains("perm_head_weight"))
    compare("image_from_tokens_perm_head", image_of(tokens.matmul(data.get("perm_head_weight").to(options.device).t())));
  if (data.contains("counting_tokens"))
    compare("image_from_counting_tokens_identity_head", image_of(data.get("counting_tokens").to(options.device)));
  return rows;
}

}  // namespace welkin::verify
