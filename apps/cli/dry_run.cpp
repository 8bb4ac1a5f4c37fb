// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/dry_run.h"

#include <optional>
#include <ostream>
#include <string>

#include "apps/cli/run_estimate.h"
#include "config/print/print.h"
#include "config/resolve/paths.h"
#include "core/process/host.h"
#include "core/text.h"
#include "parallel/mesh/mesh_picture.h"
#include "parallel/mesh/run_mesh.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

std::string ranks_text(const config::RunConfig& config, int64_t world_size, int64_t num_nodes) {
  const parallel::Mesh mesh = parallel::mesh_of(config.parallel, world_size);
  return cat("\n", parallel::mesh_picture(mesh, num_nodes), "local batch ", config.loop.local_batch_size.value_or(0), " of ",
             config.loop.global_batch_size, " samples per step\n");
}

// Memory that offloading moves, where the configuration alone decides it.
std::string offload_text(const Application& application, const config::CommandLine& line, const config::RunConfig& config,
                         int64_t world_size) {
  const train::Registries& registries = application.registries;
  const bool is_known = registries.models.at(config.model.model).cost && registries.datasets.at(config.data.dataset).facts;
  if (config.backend.offload.empty() || !is_known) return "";
  const plan::RunEstimate estimate = estimate_of(application, line, {.world = world_size});
  const auto text = [](double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); };
  const std::string traffic =
      estimate.disk_bytes > 0 ? cat(", ", text(estimate.disk_bytes), " to and from the disk in a step") : "";
  return cat("\noffload: ", text(estimate.offloaded_bytes), " of a rank leave the memory of its device", traffic,
             " (welkin plan estimate)\n");
}

// Opens the data as training would, without keeping or copying any of it.
void warn_of_data(Application& application, config::RunConfig config) {
  if (config.data.data_loader_config == config::Loader::Synthetic) return;
  config.data.resident = config::Residence::None;
  if (config.data.data_loader_config == config::Loader::InMem) config.data.data_loader_config = config::Loader::LowMem;
  const train::DatasetEntry& entry = application.registries.datasets.at(config.data.dataset);
  const auto train = entry.open(config, data::Split::Train), valid = entry.open(config, data::Split::Valid);
  for (const std::string& note : data::notes_of({train.get(), valid.get()})) application.err << "note: " << note << "\n";
  for (const std::string& warning : data::warnings_of({train.get(), valid.get()})) {
    application.err << "warning: " << warning << "\n";
  }
}

}  // namespace

void print_configuration(Application& application, const config::CommandLine& line, const config::Resolved& resolved,
                         int64_t world_size, int64_t num_nodes) {
  if (world_size > 1) check_layout_of(application.registries, resolved.config, world_size);
  if (line.dry_run == config::DryRun::Yaml) {
    application.out << config::yaml(resolved.config);
  } else {
    application.out << config::table(resolved, world_size);
    if (world_size > 1) application.out << ranks_text(resolved.config, world_size, num_nodes);
    application.out << offload_text(application, line, resolved.config, world_size);
  }
  if (line.check_data) {
    config::check_paths(resolved.config);
    return warn_of_data(application, resolved.config);
  }
  if (const std::string missing = config::describe_missing(resolved.config); !missing.empty()) {
    application.err << "warning: " << missing << "\n";
  }
}

}  // namespace welkin::apps
