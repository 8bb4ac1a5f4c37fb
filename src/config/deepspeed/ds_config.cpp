// SPDX-License-Identifier: Apache-2.0
#include "config/deepspeed/ds_config.h"

#include <cmath>
#include <utility>

#include "config/deepspeed/ds_reader.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// The YAML parser reads JSON, with lines for messages and limits; other forms of YAML are refused.
void expect_json(std::string_view text, const std::string& name) {
  const size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string_view::npos && text[first] == '{') return;
  throw ConfigError("config", cat(name, ": not a JSON object"), "Give the file that DeepSpeed takes: it begins with {");
}

void read_checkpointing(DsReader& reader) {
  constexpr std::string_view kName = "activation_checkpointing.number_checkpoints";
  const DsWhole blocks = read_ds_whole(reader, kName, 1);
  if (!blocks.value) return;
  reader.set("loop.activation_checkpointing", "blocks", kName);
  reader.set("loop.activation_checkpointing_blocks", cat(*blocks.value), kName);
}

// Reads a constant loss scale: it neither grows nor falls.
void read_loss_scale(DsReader& reader) {
  constexpr std::string_view kStatic = "fp16.loss_scale", kPower = "fp16.initial_scale_power", kWindow = "fp16.loss_scale_window",
                             kLeast = "fp16.min_loss_scale";
  const std::string scale = reader.text(kStatic, ds_number);
  const YamlNode* fixed = reader.find(kStatic);
  if (!scale.empty() && fixed->number != 0) {
    reader.set("precision.loss_scale", scale, kStatic);
    reader.set("precision.loss_scale_min", scale, kStatic);
    return reader.set("precision.loss_scale_window", cat(int64_t{1} << 30), kStatic);
  }
  constexpr int64_t kMostPower = 64;
  if (const DsWhole power = read_ds_whole(reader, kPower, 0); power.value && *power.value > kMostPower) {
    reader.problem(kPower, cat("is above ", kMostPower, ": ", *power.value), "DeepSpeed's own default is 16");
  } else if (power.value) {
    reader.set("precision.loss_scale", cat(std::ldexp(1.0, static_cast<int>(*power.value))), kPower);
  }
  if (const std::string window = reader.text(kWindow, ds_whole); !window.empty()) {
    reader.set("precision.loss_scale_window", window, kWindow);
  }
  const std::string least = reader.text(kLeast, ds_number);
  if (!least.empty()) reader.set("precision.loss_scale_min", least, kLeast);
}

std::string autocast_mode(DsReader& reader) {
  const YamlNode* type = reader.find("torch_autocast.dtype");
  if (type == nullptr || type->text == "bfloat16" || type->text == "torch.bfloat16") return "bf16";
  if (type->text == "float16" || type->text == "torch.float16") return "fp16";
  reader.problem("torch_autocast.dtype", cat("is none of bfloat16, float16: ", type->text), "Say one of them");
  return "";
}

}  // namespace

void read_ds_precision(DsReader& reader, DsConfig& config) {
  std::string_view first;
  const std::pair<std::string_view, std::string> modes[] = {{"fp16.enabled", "fp16"},
                                                            {"bf16.enabled", "bf16"},
                                                            {"bfloat16.enabled", "bf16"},
                                                            {"torch_autocast.enabled", autocast_mode(reader)}};
  for (const auto& [name, mode] : modes) {
    const std::string state = reader.text(name, ds_switch);
    if (state.empty() || mode.empty()) continue;
    if (state == "false") {
      config.modes_off.emplace_back(*choice_named<AmpMode>(mode), reader.place(name));
    } else if (!first.empty()) {
      reader.problem(name, cat("is true, and so is ", first), "Enable one of them");
    } else {
      first = name;
      reader.set("precision.amp_mode", mode, name);
    }
  }
  if (!first.empty()) config.modes_off.clear();
  read_loss_scale(reader);
}

DsConfig read_ds_config(std::string_view text, const std::string& name, Problems& problems) {
  expect_json(text, name);
  const YamlDocument document = parse_yaml(text, name);
  DsConfig config{.name = name};
  DsReader reader(document, config, problems);
  reader.read();
  config.train_batch = read_ds_whole(reader, "train_batch_size", 1);
  config.micro_batch = read_ds_whole(reader, "train_micro_batch_size_per_gpu", 1);
  config.accumulation = read_ds_whole(reader, "gradient_accumulation_steps", 1);
  read_ds_precision(reader, config);
  read_ds_offload(reader);
  read_ds_optimizer(reader);
  read_ds_scheduler(reader, config);
  read_checkpointing(reader);
  return config;
}

}  // namespace welkin::config
