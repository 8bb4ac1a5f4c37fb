// SPDX-License-Identifier: Apache-2.0
// From meta.json to a case. A low-precision case takes model, weights and inputs from the float32 case that it names.
#include "train/reference/model_case.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::train::reference {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr uint64_t kMetaLimitBytes = uint64_t{1} << 26;

Json read_meta(const fs::path& folder) { return Json::parse(read_file(folder / "meta.json", kMetaLimitBytes)); }

// Messages of the JSON library name the missing key; the user needs the file too.
template <typename Read>
auto with_source(const fs::path& folder, Read read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    throw DataError("reference", cat("meta.json does not describe a case: folder=", folder.string(), ", error=", error.what()),
                    "Give a folder of the reference cases");
  }
}

bool has_name_with(const StoredTensors& stored, const std::string& part) {
  for (const std::string& name : stored.names()) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

bool has_joint_qkv(const ModelCase& c) {
  for (const auto& [name, formula] : c.formula) {
    if (name.find(".attn.qkv.") != std::string::npos) return true;
  }
  const auto weights = open_stored(c.weights_folder, "weights");
  return weights && has_name_with(*weights, ".attn.qkv.");
}

void read_formula(const Json& meta, ModelCase& c) {
  if (!meta.contains("formula")) return;
  c.salt = meta.at("formula").at("salt").get<std::string>();
  for (const auto& [name, entry] : meta.at("tensors").items()) {
    FormulaTensor formula;
    formula.shape = entry.at("shape").get<std::vector<int64_t>>();
    formula.scale = entry.at("scale").get<double>();
    formula.offset = entry.at("offset").get<double>();
    formula.bits_sum = std::stoull(entry.at("bits_sum_u64").get<std::string>(), nullptr, 16);
    c.formula.emplace(name, std::move(formula));
  }
}

void read_vit(const Json& constructor, ModelCase& c) {
  config::ModelConfig& m = c.config.model;
  m.model = "vit";
  m.embed_dim = constructor.at("embed_dim").get<int64_t>();
  m.depth = constructor.at("depth").get<int64_t>();
  m.num_heads = constructor.at("num_heads").get<int64_t>();
  m.patch_size = constructor.at("patch_size").get<int64_t>();
  m.mlp_ratio = constructor.at("mlp_ratio").get<double>();
  m.dropout = constructor.at("dropout").get<double>();
  m.qkv = has_joint_qkv(c) ? "joint" : "separate";
}

void read_unet3d(const Json& constructor, ModelCase& c) {
  config::ModelConfig& m = c.config.model;
  m.model = "unet3d";
  m.full_scale = constructor.at("full_scale").get<bool>();
  m.width = constructor.at("width").get<int64_t>();
}

void read_model(const Json& meta, ModelCase& c) {
  const Json& constructor = meta.at("model").at("constructor");
  const bool vit = constructor.contains("embed_dim");
  if (vit) {
    read_vit(constructor, c);
  } else {
    read_unet3d(constructor, c);
  }
  const auto input = meta.at("input_shape").get<std::vector<int64_t>>();
  const auto target = meta.at("target_shape").get<std::vector<int64_t>>();
  c.shape.in_channels = input.at(1);
  c.shape.out_channels = target.at(1);
  c.shape.grid.assign(input.begin() + 2, input.end());
  c.config.loss.loss = vit ? "relative_l2" : "l1_rho";
  if (meta.at("loss").is_object()) c.config.loss.lambda_rho = meta.at("loss").at("lambda_rho").get<double>();
  const Json& optimizer = meta.at("optimizer");
  c.config.optimizer.lr = optimizer.at("lr").get<double>();
  c.config.optimizer.betas = optimizer.at("betas").get<std::vector<double>>();
  c.config.optimizer.eps = optimizer.at("eps").get<double>();
}

void read_noise(const Json& meta, ModelCase& c) {
  if (!meta.contains("noise_only_params")) return;
  const Json& noise = meta.at("noise_only_params");
  if (noise.is_string()) {  // "blocks.*.attn.k.bias (why)"
    const auto text = noise.get<std::string>();
    c.noise_patterns.push_back(text.substr(0, text.find(' ')));
    return;
  }
  for (const auto& [name, range] : noise.at("ranges").items()) {
    c.noise_only.emplace(name, std::pair{range.at(0).get<int64_t>(), range.at(1).get<int64_t>()});
  }
}

Bounds read_bounds(const Json& entry) {
  return {entry.at("rel_l2").get<double>(), entry.value("max_over_max", std::numeric_limits<double>::infinity())};
}

void read_float32_tolerance(const Json& meta, ModelCase& c) {
  const Json& t = meta.at("recommended_tolerance");
  c.tolerance.forward = read_bounds(t.at("forward"));
  c.tolerance.gradients = read_bounds(t.at("gradients"));
  c.tolerance.loss = t.at("loss").at("rel").get<double>();
  c.tolerance.gradient_norms["*"] = c.tolerance.gradients.rel_l2;
  c.tolerance.trajectory_loss = t.at("trajectory").at("loss_rel").get<double>();
  c.tolerance.trajectory_weights = t.at("trajectory").at("weights_rel_l2").get<double>();
}

void read_low_precision(const Json& meta, ModelCase& c) {
  const auto dtype = meta.at("dtype").get<std::string>();
  c.config.precision.amp_mode = dtype.starts_with("bf16") ? config::AmpMode::Bf16 : config::AmpMode::Fp16;
  const auto stored_as = meta.at("stored_as").get<std::string>();
  const std::string scale_words = "loss scale ";
  if (const size_t at = stored_as.find(scale_words); at != std::string::npos) {
    c.loss_scale = std::stod(stored_as.substr(at + scale_words.size()));
  }
  const Json& t = meta.at("tolerance");
  c.tolerance.forward = read_bounds(t.at("output"));
  for (const auto& [name, entry] : t.items()) {
    if (entry.is_object() && entry.contains("rel")) c.tolerance.numbers[name] = entry.at("rel").get<double>();
  }
  c.tolerance.loss = c.tolerance.numbers.at("loss");
  const Json& deviation = meta.at("deviation_from_fp32_case");
  c.fp32_deviation = deviation.at("output").at("rel_l2").get<double>();
  if (t.contains("grad_norms")) c.tolerance.gradient_norms["*"] = t.at("grad_norms").at("rel").get<double>();
  if (!deviation.contains("grads_rel_l2")) return;
  // No bound is stated: the reference is off by e from float32, another rounding order may be off by 2 e the other way.
  for (const auto& [name, value] : deviation.at("grads_rel_l2").items()) {
    c.tolerance.gradient_norms[name] = 3 * value.get<double>();
  }
}

}  // namespace

NoiseRange ModelCase::noise_of(const std::string& parameter, int64_t size) const {
  if (const auto found = noise_only.find(parameter); found != noise_only.end()) return found->second;
  for (const std::string& pattern : noise_patterns) {
    const size_t star = pattern.find('*');
    const std::string before = pattern.substr(0, star);
    const std::string after = star == std::string::npos ? "" : pattern.substr(star + 1);
    if (parameter.starts_with(before) && parameter.ends_with(after)) return std::pair{int64_t{0}, size};
  }
  return std::nullopt;
}

std::string case_kind(const fs::path& folder) {
  return with_source(folder, [&] { return read_meta(folder).at("kind").get<std::string>(); });
}

ModelCase load_model_case(const fs::path& folder) {
  return with_source(folder, [&] {
    const Json meta = read_meta(folder);
    const bool parallel = meta.at("kind").get<std::string>() == "parallel";
    const bool low_precision = meta.contains("weights_from");
    ModelCase c;
    c.folder = fs::canonical(folder);
    c.name = c.folder.filename().string();
    c.weights_folder = low_precision ? c.folder.parent_path() / meta.at("weights_from").get<std::string>() : c.folder;
    c.inputs_folder = low_precision ? c.folder.parent_path() / meta.at("inputs_from").get<std::string>() : c.folder;
    if (parallel) {
      c.output_prefix = "correct.";
      c.gradient_file = "grads_correct";
    }
    const Json model_meta = low_precision ? read_meta(c.weights_folder) : meta;
    read_formula(model_meta, c);
    read_model(model_meta, c);
    read_noise(model_meta, c);
    if (low_precision) {
      read_low_precision(meta, c);
    } else {
      read_float32_tolerance(meta, c);
    }
    return c;
  });
}

}  // namespace welkin::train::reference
