// SPDX-License-Identifier: Apache-2.0
// A round of an elastic run as the trainer sees it: it begins where the round before was left, and may end between two steps. And
// the numbers of ranks that a run can go on with.
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
  int64_t run_size = 1;                        // ranks of the whole run, after which its folder is named
  bool has_begun = false;                      // an earlier round had the run's folder: what is there is continued
  std::string note = {};                       // why there is a new round; empty in the first
  std::unique_ptr<CarriedState> carried = {};  // of this rank; the trainer leaves there what the next round takes
  std::optional<int64_t> first_step = {};      // at which the first round of this process began
  std::function<bool()> is_requested = {};     // processes wait to join
  std::function<void()> say_begun = {};        // of the first rank, when the folder is the run's
};

// Whether ranks that are left have the whole state: nothing splits model or training state, and no values lie on a disk.
bool is_replicated(const config::RunConfig& config);

// With how many ranks, from `least` to `most`, a run of `config` (resolved for `most`) trains the same batches; largest first.
std::vector<int64_t> sizes_of_run(const config::RunConfig& config, int64_t least, int64_t most);

// The same for `size` ranks.
config::RunConfig config_for(config::RunConfig config, int64_t size);

// ConfigError where no smaller number of ranks in the limits can go on.
void check_elastic_sizes(const config::RunConfig& config, int64_t least, int64_t most);

}  // namespace welkin::train
