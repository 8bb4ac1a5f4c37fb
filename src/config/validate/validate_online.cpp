// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include "config/schema/builtin_models.h"
#include "config/validate/validate.h"
#include "core/text.h"

namespace welkin::config {
namespace {

// Refuses keys for files with pairs of another program, which selects the pairs for training itself.
void refuse_keys_of_files(Draft& draft) {
  const DataConfig& data = draft.config.data;
  const std::pair<std::string_view, bool> keys[] = {{"data.history", data.history > 1},
                                                    {"data.forcing", !data.forcing.empty()},
                                                    {"data.crop", !data.crop.empty()},
                                                    {"data.crop_lat", !data.crop_lat.empty()},
                                                    {"data.crop_lon", !data.crop_lon.empty()},
                                                    {"data.datasets", !data.datasets.empty()},
                                                    {"data.variables", !data.variables.empty()},
                                                    {"data.levels", !data.levels.empty()},
                                                    {"data.roles", !data.roles.empty()},
                                                    {"data.normalization", !data.normalization.empty()},
                                                    {"data.hole_fill", !data.hole_fill.empty()},
                                                    {"data.data_loader_config", data.data_loader_config.has_value()},
                                                    {"data.resident", data.resident != Residence::None},
                                                    {"data.stage", data.stage.has_value()},
                                                    {"loss.multistep", draft.config.loss.multistep.most() > 1},
                                                    {"loss.replay_buffer", draft.config.loss.replay_buffer > 0}};
  for (const auto& [path, is_given] : keys) {
    if (!is_given) continue;
    draft.problems.add(draft.place(path),
                       cat("pairs that a program hands over do not support this: ", draft.show(path), ", dataset=", kOnline),
                       "Leave it out; the program puts into a pair what the model is to see");
  }
}

}  // namespace

void validate_online(Draft& draft) {
  constexpr std::string_view kPairs = "data.online_pairs", kBatch = "loop.global_batch_size";
  refuse_keys_of_files(draft);
  const RunConfig& config = draft.config;
  if (config.data.in_channels.empty()) {
    draft.problems.add("", cat("the channels of the pairs have no names: in_channels, dataset=", kOnline),
                       "Name them, and out_channels where the targets are others");
  }
  if (draft.is_sound({kPairs, kBatch}) && config.data.online_pairs < 2 * config.loop.global_batch_size) {
    draft.problems.add(draft.place(kPairs),
                       cat("fewer pairs are held than two batches: ", draft.show(kPairs), ", ", draft.show(kBatch)),
                       cat("Set online_pairs to at least ", 2 * config.loop.global_batch_size));
  }
}

}  // namespace welkin::config
