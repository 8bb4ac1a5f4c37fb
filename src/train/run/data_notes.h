// SPDX-License-Identifier: Apache-2.0
// Notes about bad samples, shared between ranks. The first rank logs them for all. Ranks that read the same samples skip the
// same ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "observe/log/run_log.h"
#include "parallel/comm/group.h"
#include "parallel/comm/mesh_groups.h"
#include "parallel/comm/world.h"

namespace welkin::train {

class DataNotes {
 public:
  // Both outlive it.
  DataNotes(const parallel::World& world, observe::RunLog& log) : world_(world), log_(log) {}

  // A note of this rank. A single process logs it at once; a rank among several keeps it for share().
  void add(const std::string& note);
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  // Every rank calls it, at the same place: the first one logs the notes of all, equal texts once, in the order of ranks.
  void share();
  // For ranks that no longer step together: passes the notes of this rank to `say`.
  void say_own(const std::function<void(const std::string&)>& say);

 private:
  const parallel::World& world_;
  observe::RunLog& log_;
  std::vector<std::string> waiting_;
};

// The text of the lowest rank that has one. Every rank calls it.
std::string first_text(const parallel::World& world, const std::string& own);

// For data::PipelineOptions::agree: one small collective over `group`, whose members read the same samples.
using Agreement = std::function<std::vector<int64_t>(const std::vector<int64_t>&)>;
Agreement agree_on_skips(parallel::Group group);

// The same over the ranks of one model, which read the same samples or parts of them. Empty if nothing is skipped or a rank
// reads alone.
Agreement agreement_of(const config::RunConfig& config, const parallel::MeshGroups& groups);

}  // namespace welkin::train
