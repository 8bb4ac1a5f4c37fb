// SPDX-License-Identifier: Apache-2.0
// Initial weights by their statistics, and parameter counts.
#include <ATen/TensorOperators.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "model/registry.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace initial_case {

using Json = nlohmann::json;

struct Described {
  std::string model;
  config::ModelConfig config;
  model::ModelShape shape;
};

// "vit 360x720 patch 8, 20->20 channels, embed 384, depth 12, heads 8 (...)", "unet full_scale", "unet not full_scale".
std::optional<Described> parse_count(const std::string& text) {
  Described d;
  if (text.starts_with("unet")) {
    d = {"unet3d", {}, {.in_channels = 4, .out_channels = 5, .grid = {64, 64, 64}}};
    d.config.full_scale = text.find("not full_scale") == std::string::npos;
    return text.find("full_scale") == std::string::npos ? std::nullopt : std::optional(d);
  }
  long height = 0, width = 0, patch = 0, in = 0, out = 0, embed = 0, depth = 0, heads = 0;
  if (std::sscanf(text.c_str(), "vit %6ldx%6ld patch %4ld, %4ld->%4ld channels, embed %5ld, depth %3ld, heads %3ld", &height,
                  &width, &patch, &in, &out, &embed, &depth, &heads) != 8) {
    return std::nullopt;
  }
  d = {"vit", {}, {.in_channels = in, .out_channels = out, .grid = {height, width}}};
  d.config.patch_size = patch, d.config.embed_dim = embed, d.config.depth = depth, d.config.num_heads = heads;
  return d;
}

model::ModelPtr build(const Described& d) {
  model::Registry registry;
  model::add_builtin_models(registry);
  return registry.at(d.model).build(d.config, d.shape);
}

void verify_count(const std::string& text, int64_t wanted, Rows& rows) {
  std::optional<Described> described = parse_count(text);
  if (!described) {
    rows.push_back(failed("parameters of " + text, "not a description that can be built"));
    return;
  }
  for (const config::QkvLayout qkv : {config::QkvLayout::Separate, config::QkvLayout::Joint}) {
    described->config.qkv = qkv;
    int64_t total = 0;
    for (const at::Tensor& parameter : build(*described)->parameters()) total += parameter.numel();
    const std::string name = cat("parameters of ", text, described->model == "vit" ? cat(", q k v ", name_of(qkv)) : "");
    rows.push_back(compare_flag(name, total == wanted, cat("got=", total, ", wanted=", wanted)));
    if (described->model != "vit") return;
  }
}

// Mean and deviation within five standard errors: z = 5 in a million.
ComparisonRow compare_normal(const std::string& name, const at::Tensor& values, double deviation) {
  const at::Tensor wide = values.to(at::kDouble);
  const auto n = static_cast<double>(values.numel());
  const double mean = wide.mean().item<double>();
  const double spread = wide.sub(mean).square().mean().sqrt().item<double>();
  ComparisonRow row = compare_number(name, spread, deviation, 5 / std::sqrt(2 * n));
  if (!(std::abs(mean) <= 5 * deviation / std::sqrt(n))) row = failed(name, cat("the mean is not zero: mean=", mean));
  return row;
}

ComparisonRow compare_constant(const std::string& name, const at::Tensor& values, double wanted) {
  return compare_flag(name, values.eq(wanted).all().item<bool>(), cat("not everywhere ", wanted));
}

ComparisonRow compare_uniform(const std::string& name, const at::Tensor& values, double bound) {
  ComparisonRow row = compare_normal(name, values, bound / std::sqrt(3.0));
  const double largest = values.abs().max().item<double>();
  if (largest > bound * (1 + 0x1p-23)) row = failed(name, cat("beyond the bound: largest=", largest, ", bound=", bound));
  return row;
}

void verify_unet(const Json& stated, Rows& rows) {
  Described d{"unet3d", {}, {.in_channels = 4, .out_channels = 5, .grid = {32, 32, 32}}};
  d.config.full_scale = false;
  d.config.width = 8;
  const model::ModelPtr model = build(d);
  model->initialise(1);
  const double deviation = number_after(stated.at("every conv and transposed conv weight").get<std::string>(), "normal(0, ", NAN);
  const double bias = number_after(" " + stated.at("every bias").get<std::string>(), " ", NAN);
  for (const auto& parameter : model->named_parameters()) {
    const bool is_bias = parameter.key().ends_with("bias");
    const std::string name = "initial unet " + parameter.key();
    rows.push_back(is_bias ? compare_constant(name, *parameter, bias) : compare_normal(name, *parameter, deviation));
  }
}

void verify_vit(const Json& stated, Rows& rows) {
  Described d{"vit", {}, {.in_channels = 3, .out_channels = 2, .grid = {32, 64}}};
  d.config.patch_size = 4, d.config.embed_dim = 64, d.config.depth = 2, d.config.num_heads = 4;
  const double deviation =
      number_after(stated.at("every linear weight (attention, mlp, head), pos_embed").get<std::string>(), "normal(0, ", NAN);
  const double patch_bound = 1 / std::sqrt(3.0 * 4 * 4);
  for (const config::QkvLayout qkv : {config::QkvLayout::Separate, config::QkvLayout::Joint}) {
    d.config.qkv = qkv;
    const model::ModelPtr model = build(d);
    model->initialise(1);
    for (const auto& parameter : model->named_parameters()) {
      const std::string& key = parameter.key();
      const std::string name = cat("initial vit (", name_of(qkv), ") ", key);
      if (key.starts_with("patch_embed."))
        rows.push_back(compare_uniform(name, *parameter, patch_bound));
      else if (key.ends_with("bias"))
        rows.push_back(compare_constant(name, *parameter, 0));
      else if (key.find("norm") != std::string::npos)
        rows.push_back(compare_constant(name, *parameter, 1));
      else
        rows.push_back(compare_normal(name, *parameter, deviation));
    }
  }
}

}  // namespace initial_case

Rows verify_initialisation(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  for (const auto& [key, value] : folder.meta().items()) {
    if (key.starts_with("unet")) initial_case::verify_unet(value, rows);
    if (key.starts_with("vit")) initial_case::verify_vit(value, rows);
    if (key != "parameter_counts") continue;
    for (const auto& [text, count] : value.items()) initial_case::verify_count(text, count.get<int64_t>(), rows);
  }
  return rows;
}

}  // namespace welkin::verify
