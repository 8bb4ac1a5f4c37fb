// SPDX-License-Identifier: Apache-2.0
#include "config/resolve/derive.h"

#include <cctype>
#include <string>

#include "config/flags/flag.h"
#include "config/resolve/tutorial.h"
#include "config/schema/builtin_models.h"
#include "config/schema/key.h"
#include "core/text.h"

namespace welkin::config {
namespace {

void derive_model(Draft& draft) {
  ModelConfig& model = draft.config.model;
  const Tutorial tutorial = draft.config.tutorial;
  if (model.model.empty() && tutorial != Tutorial::None) {
    model.model = is_unet_tutorial(tutorial) ? "unet3d" : "vit";
    draft.derived("model.model", cat("tutorial ", tutorial_title(tutorial)));
  }
  if (tutorial == Tutorial::Sc23 && !draft.has("model.qkv")) {
    model.qkv = QkvLayout::Joint;
    draft.derived("model.qkv", "tutorial SC23");
  }
}

void derive_dataset(Draft& draft) {
  std::string& dataset = draft.config.data.dataset;
  if (!dataset.empty()) return;
  const std::string& model = draft.config.model.model;
  if (is_builtin(model)) {
    dataset = takes_fields(model) ? "era5" : "nbody";
    draft.derived("data.dataset", cat("model ", model));
  } else if (draft.has("data.train_data_path") != draft.has("data.train_path")) {
    dataset = draft.has("data.train_data_path") ? "era5" : "nbody";
    draft.derived("data.dataset", draft.has("data.train_data_path") ? "train_data_path" : "train_path");
  }
}

void derive_loader(Draft& draft) {
  auto& loader = draft.config.data.data_loader_config;
  const std::string& dataset = draft.config.data.dataset;
  if (loader || (dataset != "era5" && dataset != "nbody")) return;
  loader = dataset == "era5" ? Loader::PyTorch : Loader::LowMem;
  draft.derived("data.data_loader_config", cat("dataset ", dataset));
}

void derive_loss(Draft& draft, const KnownNames& known) {
  RunConfig& config = draft.config;
  if (!config.loss.loss.empty()) return;
  const std::string& model = config.model.model;
  const auto row = known.default_losses.find(model);
  if (row != known.default_losses.end()) {
    config.loss.loss = row->second;
  } else if (is_builtin(model)) {
    config.loss.loss = takes_fields(model) ? "relative_l2" : "l1_rho";
  } else {
    return;
  }
  draft.derived("loss.loss", cat("model ", model));
}

// Values that these optimizers' papers, or torch.optim, take where the file gives none.
void derive_for_optimizer(Draft& draft) {
  OptimizerConfig& optimizer = draft.config.optimizer;
  const std::string reason = cat("optimizer ", optimizer.optimizer);
  const auto derive = [&](const char* path, double& value, double wanted) {
    if (draft.has(path)) return;
    value = wanted;
    draft.derived(path, reason);
  };
  if (optimizer.optimizer == "LAMB") derive("optimizer.eps", optimizer.eps, 1e-6);
  if (optimizer.optimizer == "Adafactor") derive("optimizer.eps", optimizer.eps, 0x1p-23);
  if (optimizer.optimizer == "Muon") derive("optimizer.momentum", optimizer.momentum, 0.95);
  if (optimizer.optimizer == "Lion" && optimizer.betas.empty()) {
    optimizer.betas = {0.9, 0.99};
    draft.derived("optimizer.betas", reason);
  }
}

void derive_optimization(Draft& draft) {
  RunConfig& config = draft.config;
  const bool is_vit = config.model.model == "vit";
  const bool is_unet = config.model.model == "unet3d";
  derive_for_optimizer(draft);
  if (config.optimizer.betas.empty()) {
    config.optimizer.betas = is_vit ? std::vector<double>{0.9, 0.95} : std::vector<double>{0.9, 0.999};
    draft.derived("optimizer.betas", cat("model ", config.model.model));
  }
  if (is_unet && !draft.has("optimizer.lr") && !draft.has("schedule.start_lr")) {
    config.optimizer.lr = config.schedule.start_lr = 2e-4;
    draft.derived("optimizer.lr", "model unet3d");
  }
}

// The tutorials' rank generator takes the axes in either case.
void lower_order(Draft& draft) {
  for (char& c : draft.config.parallel.parallel_order) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

void derive_folder_rule(Draft& draft) {
  const ParallelConfig& parallel = draft.config.parallel;
  if (draft.config.output.folder_rule != FolderRule::Auto) return;
  bool is_parallel = parallel.model_size() > 1;
  for (const char* path :
       {"tensor_parallel", "context_parallel", "spatial", "row_parallel_size", "col_parallel_size", "parallel_order"}) {
    is_parallel = is_parallel || draft.has(cat("parallel.", path));
  }
  draft.config.output.folder_rule = is_parallel ? FolderRule::Mp : FolderRule::Gpu;
  draft.derived("output.folder_rule", is_parallel ? "the model-parallel keys" : "the absence of model-parallel keys");
}

}  // namespace

void derive_defaults(Draft& draft, const KnownNames& known) {
  derive_model(draft);
  derive_dataset(draft);
  derive_loader(draft);
  derive_loss(draft, known);
  derive_optimization(draft);
  derive_rules(draft);
  derive_backend(draft);
  lower_order(draft);
  derive_folder_rule(draft);
}

void derive(Draft& draft, int64_t world_size, const KnownNames& known) {
  derive_defaults(draft, known);
  resolve_synonyms(draft);
  resolve_batch(draft, world_size);
  rebind_paths(draft);
}

}  // namespace welkin::config
