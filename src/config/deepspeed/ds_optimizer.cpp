// SPDX-License-Identifier: Apache-2.0
// The sections `optimizer` and `scheduler`: their types decide what their parameters are.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/deepspeed/ds_reader.h"
#include "core/text.h"

namespace welkin::config {
namespace {

using enum DsRule;

constexpr std::string_view kOptimizer = "optimizer.type", kScheduler = "scheduler.type";
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOptimizers{
    {{"adam", "AdamW"}, {"adamw", "AdamW"}, {"lamb", "LAMB"}, {"lion", "Lion"}, {"sgd", "SGD"}, {"muon", "Muon"}}};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string param(std::string_view section, std::string_view name) { return cat(section, ".params.", name); }

void set_if(DsReader& reader, std::string_view path, const std::string& text, std::string_view name) {
  if (!text.empty()) reader.set(path, text, name);
}

void read_ramp(DsReader& reader) {
  const std::string steps = param("scheduler", "warmup_num_steps"), type = param("scheduler", "warmup_type");
  set_if(reader, "schedule.warmup_steps", reader.text(steps, ds_whole), steps);
  const YamlNode* form = reader.find(type);
  if (form != nullptr && form->text != "log" && form->text != "linear") {
    return reader.problem(type, cat("is none of log, linear: ", form->text), "Say one of them");
  }
  if (!reader.is_auto(type))
    reader.set("schedule.warmup_form", form == nullptr ? "log" : form->text, form == nullptr ? kScheduler : type);
}

void read_warmup(DsReader& reader, const char* schedule, bool decays) {
  const std::string low = param("scheduler", "warmup_min_lr"), high = param("scheduler", "warmup_max_lr");
  reader.set("schedule.schedule", schedule, kScheduler);
  read_ramp(reader);
  const std::string least = reader.text(low, ds_number);
  set_if(reader, "schedule.warmup_start_lr", least, low);
  if (decays) reader.set("schedule.end_lr", least.empty() ? "0" : least, least.empty() ? kScheduler : std::string_view(low));
  set_if(reader, "optimizer.lr", reader.text(high, ds_number), high);
}

// The ratios are those of the optimizer's rate, which must then be in the file, or our own.
void read_cosine(DsReader& reader) {
  const std::string start = param("scheduler", "warmup_min_ratio"), end = param("scheduler", "cos_min_ratio"),
                    rate = param("optimizer", "lr");
  reader.set("schedule.schedule", "cosine", kScheduler);
  read_ramp(reader);
  const YamlNode* lr = reader.find(rate);
  for (const auto& [name, path] :
       {std::pair<std::string, const char*>{start, "schedule.warmup_start_lr"}, {end, "schedule.end_lr"}}) {
    if (reader.text(name, ds_number).empty()) continue;
    const double ratio = reader.find(name)->number;
    if (lr == nullptr && ratio != 0) {
      reader.problem(name, cat("is a share of optimizer.params.lr, which is not given: ", ratio),
                     "Give optimizer.params.lr a number");
    } else {
      reader.set(path, ratio == 0 ? "0" : cat(ratio * lr->number), name);
    }
  }
}

void read_cycle(DsReader& reader) {
  const auto name = [](std::string_view key) { return param("scheduler", key); };
  for (const char* key : {"decay_lr_rate", "decay_step_size", "cycle_first_stair_count", "cycle_second_stair_count"}) {
    const YamlNode* node = reader.find(name(key));
    if (node != nullptr && !reader.text(name(key), ds_number).empty() && node->number != 0) {
      reader.problem(name(key), cat("cannot be done here: ", node->text),
                     "A cycle is straight lines: say 0, or give lr_schedule.table");
    }
  }
  const YamlNode* momentum = reader.find(name("cycle_momentum"));
  if (momentum != nullptr && reader.text(name("cycle_momentum"), ds_switch) == "true") {
    reader.problem(name("cycle_momentum"), "cannot be done here: true", "The momentum stays as it is: say false");
  }
  const std::string low = reader.text(name("cycle_min_lr"), ds_number), high = reader.text(name("cycle_max_lr"), ds_number);
  const DsWhole up = read_ds_whole(reader, name("cycle_first_step_size"), 1);
  const DsWhole down = read_ds_whole(reader, name("cycle_second_step_size"), 1);
  if (low.empty() || high.empty()) {
    return reader.problem(kScheduler, "OneCycle wants cycle_min_lr and cycle_max_lr", "Give both numbers");
  }
  const int64_t peak = up.value.value_or(2000);  // DeepSpeed's default
  reader.set("schedule.schedule", "table", kScheduler);
  reader.set("schedule.table", cat("[0, ", low, ", ", peak, ", ", high, ", ", peak + down.value.value_or(peak), ", ", low, "]"),
             kScheduler);
}

}  // namespace

std::vector<DsKey> ds_optimizer_keys() {
  return {
      {"optimizer.type", Combined, "optimizer.optimizer",
       "Adam (AdamW, unless adam_w_mode is false), AdamW, Lamb, Lion, SGD or Muon; others are errors"},
      {"optimizer.legacy_fusion", NoEffect, "", "updates are always fused"},
      {"optimizer.params.lr", Key, "optimizer.lr", "learning rate", ds_number},
      {"optimizer.params.betas", Combined, "optimizer.betas", "two decay rates"},
      {"optimizer.params.eps", Key, "optimizer.eps", "term in the denominator", ds_number},
      {"optimizer.params.weight_decay", Key, "optimizer.weight_decay", "as our key says of each optimizer", ds_number},
      {"optimizer.params.momentum", Key, "optimizer.momentum", "SGD, Muon", ds_number},
      {"optimizer.params.nesterov", OnlyOff, "", "SGD is without Nesterov's momentum: say false"},
      {"optimizer.params.dampening", OnlyOff, "", "SGD's momentum is not damped: say 0", nullptr, "0.0"},
      {"optimizer.params.ns_steps", Key, "optimizer.muon_steps", "Muon: steps of the Newton-Schulz iteration", ds_whole},
      {"optimizer.params.adam_w_mode", Combined, "optimizer.optimizer", "false: Adam adds weight_decay to the gradient"},
      {"optimizer.params.torch_adam", NoEffect, "", "one implementation, equal to PyTorch's"},
      {"optimizer.params.fused", NoEffect, "", "updates are always fused"},
      {"optimizer.params.foreach", NoEffect, "", "updates are always fused"},
      {"optimizer.params.set_grad_none", NoEffect, "", "gradients are freed"},
      {"optimizer.params.bias_correction", Combined, "optimizer.optimizer", "must be true"},
      {"optimizer.params.amsgrad", OnlyOff, "", "There is no amsgrad: say false"},
      {"optimizer.params.max_grad_norm", OnlyOff, "", "Say gradient_clipping instead", nullptr, "0.0"},
      {"optimizer.params.max_coeff", Combined, "optimizer.lamb_max_ratio",
       "Lamb: largest quotient of norms; 10 where it is absent"},
      {"optimizer.params.min_coeff", Combined, "optimizer.lamb_min_ratio",
       "Lamb: least quotient of norms; 0.01 where it is absent"},
      {"scheduler.type", Combined, "schedule.schedule",
       "WarmupLR: constant; WarmupDecayLR: linear; WarmupCosineLR: cosine; OneCycle: table; LRRangeTest is an error"},
      {"scheduler.params.warmup_min_lr", Combined, "schedule.warmup_start_lr",
       "rate before the ramp, and where WarmupDecayLR ends"},
      {"scheduler.params.warmup_max_lr", Combined, "optimizer.lr", "rate after the ramp; stands above optimizer.params.lr"},
      {"scheduler.params.warmup_num_steps", Combined, "schedule.warmup_steps", "length of the ramp"},
      {"scheduler.params.warmup_type", Combined, "schedule.warmup_form", "log (also where it is absent) or linear"},
      {"scheduler.params.total_num_steps", Combined, "loop.num_iters",
       "must be num_iters where that is given: a schedule ends with the run"},
      {"scheduler.params.warmup_min_ratio", Combined, "schedule.warmup_start_lr", "WarmupCosineLR: share of optimizer.params.lr"},
      {"scheduler.params.cos_min_ratio", Combined, "schedule.end_lr", "WarmupCosineLR: share of optimizer.params.lr"},
      {"scheduler.params.cycle_min_lr", Combined, "schedule.table", "OneCycle: rate at both ends"},
      {"scheduler.params.cycle_max_lr", Combined, "schedule.table", "OneCycle: rate at the peak"},
      {"scheduler.params.cycle_first_step_size", Combined, "schedule.table", "OneCycle: steps up"},
      {"scheduler.params.cycle_second_step_size", Combined, "schedule.table",
       "OneCycle: steps down; those up where it is absent"},
      {"scheduler.params.cycle_first_stair_count", Combined, "schedule.table", "OneCycle: must be 0"},
      {"scheduler.params.cycle_second_stair_count", Combined, "schedule.table", "OneCycle: must be 0"},
      {"scheduler.params.decay_step_size", Combined, "schedule.table", "OneCycle: must be 0"},
      {"scheduler.params.decay_lr_rate", Combined, "schedule.table", "OneCycle: must be 0"},
      {"scheduler.params.cycle_momentum", Combined, "schedule.table", "OneCycle: must be false; the momentum stays"},
      {"scheduler.params.cycle_min_mom", NoEffect, "", "the momentum stays"},
      {"scheduler.params.cycle_max_mom", NoEffect, "", "the momentum stays"},
      {"scheduler.params.decay_mom_rate", NoEffect, "", "the momentum stays"},
      {"scheduler.params.last_batch_iteration", NoEffect, "", "a resumed run knows its step"},
  };
}

namespace {

// DeepSpeed bounds the trust ratio also where no bound is given.
void read_lamb(DsReader& reader) {
  for (const auto& [key, path, usual] :
       {std::tuple{"min_coeff", "optimizer.lamb_min_ratio", "0.01"}, std::tuple{"max_coeff", "optimizer.lamb_max_ratio", "10"}}) {
    const std::string name = param("optimizer", key), given = reader.text(name, ds_number);
    if (reader.is_auto(name)) continue;
    reader.set(path, given.empty() ? usual : given, given.empty() ? kOptimizer : std::string_view(name));
  }
}

}  // namespace

void read_ds_optimizer(DsReader& reader) {
  const std::string betas = param("optimizer", "betas"), bias = param("optimizer", "bias_correction");
  if (const YamlNode* list = reader.find(betas)) {
    std::vector<std::string> items;
    for (const YamlId item : list->items) items.push_back(ds_number(reader.document().at(item)).text);
    const bool is_pair = items.size() == 2 && !items[0].empty() && !items[1].empty();
    if (!is_pair) return reader.problem(betas, "wants two numbers", "Write [0.9, 0.999]");
    reader.set("optimizer.betas", cat("[", join(items, ", "), "]"), betas);
  }
  if (reader.text(bias, ds_switch) == "false")
    reader.problem(bias, "cannot be done here: false", "Take it out: averages are corrected");
  const YamlNode* type = reader.find(kOptimizer);
  if (type == nullptr) return;
  const std::string wanted = lower(type->text);
  const auto found = std::find_if(kOptimizers.begin(), kOptimizers.end(), [&](const auto& row) { return row.first == wanted; });
  if (found == kOptimizers.end()) {
    const bool is_compressed = wanted.starts_with("onebit") || wanted.starts_with("zeroone");
    return reader.problem(kOptimizer, cat("is not here: ", type->text),
                          is_compressed ? "Use Adam or Lamb with communication_data_type: bf16"
                                        : "Use Adam, AdamW, Lamb, Lion, SGD or Muon, or leave it out and give our key optimizer");
  }
  const bool is_plain = wanted == "adam" && reader.text(param("optimizer", "adam_w_mode"), ds_switch) == "false";
  reader.set("optimizer.optimizer", is_plain ? "Adam" : std::string(found->second), kOptimizer);
  if (wanted == "lamb") read_lamb(reader);
}

void read_ds_scheduler(DsReader& reader, DsConfig& config) {
  const YamlNode* type = reader.find(kScheduler);
  config.total_steps = read_ds_whole(reader, param("scheduler", "total_num_steps"), 1);
  if (type == nullptr) return;
  if (type->text == "WarmupLR") return read_warmup(reader, "constant", false);
  if (type->text == "WarmupDecayLR") return read_warmup(reader, "linear", true);
  if (type->text == "WarmupCosineLR") return read_cosine(reader);
  if (type->text == "OneCycle") return read_cycle(reader);
  reader.problem(kScheduler, cat("is not here: ", type->text),
                 type->text == "LRRangeTest" ? "Use welkin train --find_lr"
                                             : "Use WarmupLR, WarmupDecayLR, WarmupCosineLR or OneCycle, or our key lr_schedule");
}

}  // namespace welkin::config
