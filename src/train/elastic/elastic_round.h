// SPDX-License-Identifier: Apache-2.0
// A round of an elastic run as the trainer sees it: it begins where the round before ended, and may end between two steps. And
// the numbers of ranks with which a run can go on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "train/elastic/carried_state.h"

namespace welkin::train {

struct ElasticRound {
  int64_t number = 1;
  int64_t run_size = 1;                        // ranks of the whole run; its folder is named after them
  bool has_begun = false;                      // an earlier round used the run's folder: the run continues from it
  std::string note = {};                       // why there is a new round; empty in the first
  std::unique_ptr<CarriedState> carried = {};  // of this rank; the trainer leaves here the state for the next round
  std::optional<int64_t> first_step = {};      // the step at which the first round of this process began
  std::function<bool()> is_requested = {};     // processes wait to join
  std::function<void()> say_begun = {};        // called by the first rank when the folder is the run's
};

// True if the remaining ranks have the whole state: neither model nor training state is split, and no values lie on a disk.
bool is_replicated(const config::RunConfig& config);

// The numbers of ranks in [least, most] with which a run of `config` (resolved for `most`) trains equal batches; largest first.
std::vector<int64_t> sizes_of_run(const config::RunConfig& config, int64_t least, int64_t most);

// The same configuration for `size` ranks.
config::RunConfig config_for(config::RunConfig config, int64_t size);

// ConfigError if the run can go on with no smaller number of ranks within the limits.
void check_elastic_sizes(const config::RunConfig& config, int64_t least, int64_t most);

}  // namespace welkin::train
