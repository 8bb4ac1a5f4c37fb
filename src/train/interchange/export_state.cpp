// SPDX-License-Identifier: Apache-2.0
#include "train/interchange/export_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isinf.h>

#include <algorithm>
#include <array>

#include "core/archive/safetensors.h"
#include "core/archive/torch_writer.h"
#include "core/error.h"
#include "core/text.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/format/stored_tensor.h"

namespace welkin::train::interchange {
namespace {

bool is_floating(Dtype dtype) {
  return dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16;
}

Dtype written_dtype(const StateTensor& tensor, const ExportOptions& options) {
  const bool converts = options.dtype && tensor.group == "model" && is_floating(tensor.dtype);
  return converts ? stored_dtype(*options.dtype) : tensor.dtype;
}

at::Tensor converted(const StateTensor& tensor, Dtype dtype) {
  at::Tensor value = tensor.read();
  if (dtype == tensor.dtype) return value;
  at::Tensor narrow = value.to(tensor_dtype(dtype));
  if (at::isinf(narrow).sum().item<int64_t>() != at::isinf(value).sum().item<int64_t>()) {
    throw CheckpointError("checkpoint",
                          cat("a value is too large for the type: tensor=", tensor.name, ", dtype=", dtype_name(dtype),
                              ", largest=", value.abs().max().item<double>()),
                          "Export it as bf16 or fp32");
  }
  return narrow;
}

template <typename Emit>
auto producer(const StateTensor& tensor, Dtype dtype) {
  return [&tensor, dtype](const Emit& emit) { emit(bytes_of(converted(tensor, dtype).contiguous())); };
}

void check_optimizer(const State& state) {
  if (state.has_group("optimizer")) return;
  throw CheckpointError("checkpoint", cat("there is no optimizer's state to export: path=", state.path.string()),
                        "Export the weights alone, without --optimizer");
}

// These optimizers have states of other names and meaning than Adam's and SGD's.
void check_kind(const State& state) {
  constexpr std::array<std::string_view, 5> kOwn{"Lion", "LAMB", "LARS", "Adafactor", "Muon"};
  if (std::ranges::find(kOwn, state.optimizer.kind) == kOwn.end()) return;
  throw CheckpointError(
      "checkpoint",
      cat("this optimizer has no layout in a file of PyTorch: optimizer=", state.optimizer.kind, ", path=", state.path.string()),
      "Export without --optimizer, or as .safetensors, which keeps the states under their own names");
}

void export_safetensors(const State& state, const ExportOptions& options, const std::filesystem::path& out) {
  SafetensorsWriter writer;
  writer.set_metadata("format", "pt");  // key that Python libraries look for
  if (options.optimizer) writer.set_metadata("welkin.groups", "model optimizer");
  if (state.iteration) writer.set_metadata("iters", cat(*state.iteration));
  if (!state.config.empty()) writer.set_metadata("welkin.config", state.config);
  if (!options.normalization.empty()) writer.set_metadata("welkin.normalization", options.normalization);
  for (const StateTensor& tensor : state.tensors) {
    if (tensor.group != "model" && !(options.optimizer && tensor.group == "optimizer")) continue;
    const Dtype dtype = written_dtype(tensor, options);
    writer.add(tensor.name, dtype, tensor.shape, producer<SafetensorsWriter::Emit>(tensor, dtype));
  }
  writer.write(out);
}

class TorchExport {
 public:
  TorchExport(const State& state, const ExportOptions& options) : state_(state), options_(options) {}

  void write(const std::filesystem::path& out) {
    if (options_.optimizer) {
      writer_.begin_dict();
      key_integer("epoch", state_.epoch.value_or(0));
      key_integer("iters", state_.iteration.value_or(0));
      writer_.text("model_state");
      add_model();
      writer_.text("optimizer_state_dict");
      add_optimizer();
      writer_.end_dict();
    } else {
      add_model();
    }
    if (!state_.config.empty()) writer_.extra("config.yaml", state_.config);
    if (!options_.normalization.empty()) writer_.extra("normalization.json", options_.normalization);
    writer_.write(out);
  }

 private:
  void key_integer(std::string_view key, int64_t value) {
    writer_.text(key);
    writer_.integer(value);
  }
  void key_number(std::string_view key, double value) {
    writer_.text(key);
    writer_.number(value);
  }
  void key_switch(std::string_view key, bool value) {
    writer_.text(key);
    writer_.boolean(value);
  }
  void key_none(std::string_view key) {
    writer_.text(key);
    writer_.none();
  }

  void add(const StateTensor& tensor) {
    const Dtype dtype = written_dtype(tensor, options_);
    writer_.tensor(dtype, tensor.shape, producer<archive::ZipWriter::Emit>(tensor, dtype));
  }

  void add_model() {
    writer_.begin_dict();
    for (const StateTensor& tensor : state_.tensors) {
      if (tensor.group != "model") continue;
      writer_.text(tensor.name);
      add(tensor);
    }
    writer_.end_dict();
  }

  // Our weight decay spares biases and norms: if there is weight decay, they are a group of their own.
  std::vector<std::vector<const StateTensor*>> groups() const {
    std::vector<const StateTensor*> all, decaying, others;
    for (const std::string& name : parameters()) {
      const StateTensor* tensor = state_.find(name);
      if (tensor == nullptr) continue;
      all.push_back(tensor);
      const bool decays = parallel::decay_group_of(name, tensor->shape) == parallel::DecayGroup::Decay;
      (decays ? decaying : others).push_back(tensor);
    }
    if (state_.optimizer.weight_decay.value_or(0) == 0) return {all};
    return {decaying, others};
  }

  // torch.optim numbers the parameters in the order of registration.
  std::vector<std::string> parameters() const {
    if (!state_.parameters.empty()) return state_.parameters;
    throw CheckpointError("checkpoint",
                          cat("it does not say in which order the parameters were made, so an optimizer of PyTorch cannot number "
                              "them: path=",
                              state_.path.string()),
                          "Continue the run for a step, which saves it; or export the weights alone, without --optimizer");
  }

  bool is_adam() const { return state_.find("optimizer.steps") != nullptr; }

  void add_optimizer() {
    const auto lists = groups();
    writer_.begin_dict();
    writer_.text("state");
    writer_.begin_dict();
    int64_t number = 0;
    for (const auto& list : lists) {
      for (const StateTensor* parameter : list) {
        if (!is_frozen(parameter->name)) add_entry(number, parameter->name);
        ++number;
      }
    }
    writer_.end_dict();
    writer_.text("param_groups");
    writer_.begin_list();
    number = 0;
    for (size_t i = 0; i < lists.size(); ++i) {
      add_group(lists[i], number, i == 0);
      number += static_cast<int64_t>(lists[i].size());
    }
    writer_.end_list();
    writer_.end_dict();
  }

  void key_tensor(std::string_view key, const std::string& name) {
    const StateTensor* tensor = state_.find(name);
    if (tensor == nullptr) {
      throw CheckpointError("checkpoint",
                            cat("a state of the optimizer is missing: tensor=", name, ", path=", state_.path.string()),
                            "Optimizers other than Adam, AdamW and SGD have no layout in PyTorch: export without --optimizer");
    }
    writer_.text(key);
    add(*tensor);
  }

  // A parameter that was not trained has no state; nor has it in PyTorch.
  bool is_frozen(const std::string& name) const {
    const std::string prefix = is_adam() ? "optimizer.exp_avg." : "optimizer.momentum.";
    const auto is_state = [&](const StateTensor& tensor) { return tensor.name.starts_with(prefix); };
    return state_.find(prefix + name) == nullptr && std::ranges::any_of(state_.tensors, is_state);
  }

  void add_entry(int64_t number, const std::string& name) {
    writer_.integer(number);
    writer_.begin_dict();
    if (is_adam()) {
      key_tensor("step", "optimizer.steps");
      key_tensor("exp_avg", "optimizer.exp_avg." + name);
      key_tensor("exp_avg_sq", "optimizer.exp_avg_sq." + name);
    } else {
      key_tensor("momentum_buffer", "optimizer.momentum." + name);
    }
    writer_.end_dict();
  }

  void add_group(const std::vector<const StateTensor*>& list, int64_t number, bool decays) {
    const OptimizerSettings& settings = state_.optimizer;
    writer_.begin_dict();
    key_number("lr", settings.rate.value_or(1e-3));
    key_number("weight_decay", decays ? settings.weight_decay.value_or(0) : 0);
    if (is_adam()) {
      writer_.text("betas");
      writer_.begin_tuple();
      writer_.number(settings.beta1.value_or(0.9));
      writer_.number(settings.beta2.value_or(0.999));
      writer_.end_tuple();
      key_number("eps", settings.eps.value_or(1e-8));
      key_switch("amsgrad", false);
      key_switch("capturable", false);
      key_switch("decoupled_weight_decay", settings.kind == "AdamW");
    } else {
      key_number("momentum", settings.momentum.value_or(0.9));
      key_number("dampening", 0);
      key_switch("nesterov", false);
    }
    key_switch("maximize", false);
    key_switch("differentiable", false);
    key_none("foreach");
    key_none("fused");
    writer_.text("params");
    writer_.begin_list();
    for (size_t i = 0; i < list.size(); ++i) writer_.integer(number + static_cast<int64_t>(i));
    writer_.end_list();
    writer_.text("param_names");
    writer_.begin_list();
    for (const StateTensor* tensor : list) writer_.text(tensor->name);
    writer_.end_list();
    writer_.end_dict();
  }

  const State& state_;
  const ExportOptions& options_;
  archive::TorchWriter writer_;
};

}  // namespace

std::optional<FileFormat> format_of_name(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".safetensors") return FileFormat::Safetensors;
  if (ending == ".pt" || ending == ".pth" || ending == ".ckpt") return FileFormat::Torch;
  return {};
}

void export_state(const State& state, const ExportOptions& options, const std::filesystem::path& out) {
  if (options.optimizer) check_optimizer(state);
  if (!state.has_group("model")) {
    throw CheckpointError("checkpoint", cat("there is no model to export: path=", state.path.string()), "Check the path");
  }
  if (options.format == FileFormat::Safetensors) return export_safetensors(state, options, out);
  if (options.optimizer) check_kind(state);
  TorchExport(state, options).write(out);
}

}  // namespace welkin::train::interchange
