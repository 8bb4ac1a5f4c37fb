// SPDX-License-Identifier: Apache-2.0
// From meta.json to a case. A low-precision case takes model, weights and inputs from the float32 case that it names.
#include "verify/cases/model_case.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/schema/builtin_models.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::verify {
namespace {

using Json = nlohmann::json;

constexpr double kMostElements = 1ULL << 31;  // of one tensor by formula: 8 GiB

[[noreturn]] void refuse_case(const CaseFolder& folder, const std::string& what) {
  throw DataError("reference", cat(what, ", case=", folder.path().string()), "Correct the case's meta.json");
}

bool has_joint_qkv(const ModelCase& c) {
  const auto names = c.weights.names();
  return std::ranges::any_of(names, [](const std::string& name) { return name.find(".attn.qkv.") != std::string::npos; });
}

uint64_t read_hex(const CaseFolder& folder, const std::string& text) {
  uint64_t value = 0;
  const size_t skip = text.starts_with("0x") ? 2 : 0;
  const auto [end, error] = std::from_chars(text.data() + skip, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size())
    refuse_case(folder, cat("not a hexadecimal number: value=", text));
  return value;
}

FormulaTensor read_formula_tensor(const CaseFolder& folder, const std::string& name, const Json& entry) {
  FormulaTensor formula;
  formula.shape = entry.at("shape").get<std::vector<int64_t>>();
  double elements = 1;
  for (const int64_t extent : formula.shape) elements *= extent < 0 ? INFINITY : static_cast<double>(extent);
  if (!(elements <= kMostElements))
    refuse_case(folder, cat("a tensor by formula is too large: tensor=", name, ", shape=", entry.at("shape").dump()));
  formula.scale = entry.at("scale").get<double>();
  formula.offset = entry.value("offset", 0.0);
  formula.bits_sum = read_hex(folder, entry.at("bits_sum_u64").get<std::string>());
  if (entry.contains("first4")) formula.first = entry.at("first4").get<std::vector<double>>();
  return formula;
}

TensorSource read_source(const CaseFolder& folder, const std::string& stem) {
  TensorSource source{&folder, stem, {}, {}};
  const Json& meta = folder.meta();
  if (!meta.contains("formula")) return source;
  source.salt = meta.at("formula").at("salt").get<std::string>();
  const bool inputs = stem == "inputs";
  for (const auto& [name, entry] : meta.at("tensors").items()) {
    const bool is_input = name == "input" || name == "target";
    if (is_input == inputs) source.formula.emplace(name, read_formula_tensor(folder, name, entry));
  }
  return source;
}

// The described model must not be larger than the weights of the case: a few bytes of JSON could ask for any memory.
void check_size(const ModelCase& c, double least_parameters) {
  double held = 0;
  for (const std::string& name : c.weights.names()) {
    double elements = 1;
    for (const int64_t extent : c.weights.shape(name)) elements *= static_cast<double>(extent);
    held += elements;
  }
  if (least_parameters > held) {
    refuse_case(*c.folder, cat("the constructor describes a larger model than the weights are for: parameters described>=",
                               least_parameters, ", held=", held));
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
  m.dropout = constructor.value("dropout", 0.0);
  m.qkv = has_joint_qkv(c) ? config::QkvLayout::Joint : config::QkvLayout::Separate;
  if (constructor.value("layernorm_eps", 1e-6) != 1e-6)
    refuse_case(*c.folder, "the model's norms have another epsilon: layernorm_eps is not 1e-6");
  if (!constructor.value("qkv_bias", true)) refuse_case(*c.folder, "the model's attention has biases: qkv_bias=false");
  if (!(m.mlp_ratio > 0 && m.mlp_ratio < 1e4)) refuse_case(*c.folder, cat("mlp_ratio is out of range: value=", m.mlp_ratio));
  const auto embed = static_cast<double>(m.embed_dim);
  check_size(c, static_cast<double>(m.depth) * (4 + 2 * m.mlp_ratio) * embed * embed * 0.99);
}

// Models of fields by their names in the registry; the constructor's keys are those of a configuration.
void read_named(const Json& constructor, ModelCase& c) {
  config::ModelConfig& m = c.config.model;
  m.model = constructor.at("model").get<std::string>();
  if (!config::takes_fields(m.model)) refuse_case(*c.folder, cat("not a model of fields: model=", m.model));
  const std::array<std::pair<const char*, int64_t*>, 8> sizes{{{"embed_dim", &m.embed_dim},
                                                               {"depth", &m.depth},
                                                               {"patch_size", &m.patch_size},
                                                               {"num_heads", &m.num_heads},
                                                               {"num_blocks", &m.num_blocks},
                                                               {"scale_factor", &m.scale_factor},
                                                               {"width", &m.width},
                                                               {"scales", &m.scales}}};
  for (const auto& [key, value] : sizes) *value = constructor.value(key, *value);
  m.mlp_ratio = constructor.value("mlp_ratio", m.mlp_ratio);
  m.sparsity_threshold = constructor.value("sparsity_threshold", m.sparsity_threshold);
  m.window_size = constructor.value("window_size", m.window_size);
  if (constructor.value("model_grid_type", std::string("equiangular")) == "legendre-gauss") {
    m.model_grid_type = config::GridType::LegendreGauss;
  }
  const auto embed = static_cast<double>(m.embed_dim), width = static_cast<double>(m.width);
  if (m.model == "unet2d") {
    check_size(c, 9 * 2 * width * width);
  } else {
    if (!(m.mlp_ratio > 0 && m.mlp_ratio < 1e4)) refuse_case(*c.folder, cat("mlp_ratio is out of range: value=", m.mlp_ratio));
    check_size(c, static_cast<double>(m.depth) * 2 * m.mlp_ratio * embed * embed * 0.99);
  }
}

void read_unet3d(const Json& constructor, ModelCase& c) {
  config::ModelConfig& m = c.config.model;
  m.model = "unet3d";
  m.full_scale = constructor.at("full_scale").get<bool>();
  m.width = constructor.value("width", int64_t{64});
  const auto width = static_cast<double>(m.width);
  check_size(c, 64 * 2 * width * width);  // the second convolution alone
}

void read_optimizer(const Json& meta, ModelCase& c) {
  config::OptimizerConfig& o = c.config.optimizer;
  o.betas = {0.9, 0.999};
  if (!meta.contains("optimizer")) return;
  const Json& optimizer = meta.at("optimizer");
  o.optimizer = optimizer.value("name", std::string("Adam"));
  if (o.optimizer != "Adam" && o.optimizer != "AdamW" && o.optimizer != "SGD")
    refuse_case(*c.folder, cat("unknown optimizer: name=", o.optimizer));
  if (optimizer.value("amsgrad", false) || optimizer.value("nesterov", false))
    refuse_case(*c.folder, "amsgrad and nesterov are not here");
  o.lr = optimizer.at("lr").get<double>();
  o.betas = optimizer.value("betas", o.betas);
  o.eps = optimizer.value("eps", o.eps);
  o.weight_decay = optimizer.value("weight_decay", 0.0);
  o.momentum = optimizer.value("momentum", 0.0);
  if (o.betas.size() != 2) refuse_case(*c.folder, "betas are two numbers");
}

void read_loss(const Json& loss, ModelCase& c) {
  const std::string name = loss.is_object() ? loss.at("name").get<std::string>() : loss.get<std::string>();
  if (name.starts_with("l2_loss")) {
    c.config.loss.loss = "relative_l2";
  } else if (name == "loss_func") {
    c.config.loss.loss = "l1_rho";
    c.config.loss.lambda_rho = loss.is_object() ? loss.value("lambda_rho", 0.0) : 0.0;
  } else {
    refuse_case(*c.folder, cat("unknown loss: loss=", name));
  }
}

void check_input(const ModelCase& c, const std::string& name, const std::vector<int64_t>& stated) {
  const std::vector<int64_t> held = c.inputs.shape(name);
  if (held == stated && stated.size() >= 3) return;
  refuse_case(*c.folder, cat("wrong shape: tensor=", name, ", stated=[", join(stated, ","), "], held=[", join(held, ","), "]"));
}

void read_model(const Json& meta, ModelCase& c) {
  c.input_shape = meta.at("input_shape").get<std::vector<int64_t>>();
  c.target_shape = meta.at("target_shape").get<std::vector<int64_t>>();
  check_input(c, "input", c.input_shape);
  check_input(c, "target", c.target_shape);
  c.shape.in_channels = c.input_shape[1];
  c.shape.out_channels = c.target_shape[1];
  c.shape.grid.assign(c.input_shape.begin() + 2, c.input_shape.end());
  if (meta.contains("parameters")) c.num_parameters = meta.at("parameters").get<int64_t>();
  const Json& constructor = meta.at("model").at("constructor");
  if (constructor.contains("model")) {
    read_named(constructor, c);
  } else if (constructor.contains("embed_dim")) {
    read_vit(constructor, c);
  } else {
    read_unet3d(constructor, c);
  }
  read_loss(meta.at("loss"), c);
  read_optimizer(meta, c);
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
  if (!t.contains("trajectory")) return;
  c.tolerance.trajectory_loss = t.at("trajectory").at("loss_rel").get<double>();
  c.tolerance.trajectory_weights = t.at("trajectory").at("weights_rel_l2").get<double>();
}

void read_low_precision(const Json& meta, ModelCase& c) {
  const auto dtype = meta.at("dtype").get<std::string>();
  c.config.precision.amp_mode = dtype.starts_with("bf16") ? config::AmpMode::Bf16 : config::AmpMode::Fp16;
  if (!dtype.starts_with("bf16") && !dtype.starts_with("fp16")) refuse_case(*c.folder, cat("unknown precision: dtype=", dtype));
  const auto stored_as = meta.value("stored_as", std::string());
  const std::string scale_words = "loss scale ";
  if (stored_as.find(scale_words) != std::string::npos) {
    c.loss_scale = number_after(stored_as, scale_words, 1.0);
    if (!(c.loss_scale >= 1e-30 && c.loss_scale <= 1e30))
      refuse_case(*c.folder, cat("loss scale is out of range: value=", c.loss_scale));
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

ModelCase load_model_case(const CaseFolder& folder) {
  const Json& meta = folder.meta();
  ModelCase c;
  c.folder = &folder;
  const auto other_or_this = [&](const char* key) -> const CaseFolder& {
    if (!meta.contains(key)) return folder;
    c.others.push_back(std::make_unique<const CaseFolder>(folder.sibling(meta.at(key).get<std::string>())));
    if (c.others.back()->meta().contains(key))
      refuse_case(folder, cat("a case takes from one that takes from another: key=", key));
    return *c.others.back();
  };
  c.weights = read_source(other_or_this("weights_from"), "weights");
  c.inputs = read_source(other_or_this("inputs_from"), "inputs");
  if (folder.kind() == "parallel") {
    c.output_prefix = "correct.";
    c.gradient_file = "grads_correct";
  }
  const Json& model_meta = c.weights.folder->meta();
  read_model(model_meta, c);
  read_noise(model_meta, c);
  if (meta.contains("weights_from")) {
    read_low_precision(meta, c);
  } else {
    read_float32_tolerance(meta, c);
  }
  return c;
}

}  // namespace welkin::verify
