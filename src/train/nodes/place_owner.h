// SPDX-License-Identifier: Apache-2.0
// The owner of a place outside of the run's folder, written in its run.json. Paths of places have the run's configuration, size
// and number alone, so that runs of two log roots would share one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace welkin::train {

struct RunName {
  std::string id;      // drawn when a run with such places begins
  std::string folder;  // of the run, absolute
  bool operator==(const RunName&) const = default;
};

std::string draw_run_id();

// The id of the run in a run folder; empty: it has none. A folder that is moved keeps its id.
std::string run_id_in(const std::filesystem::path& run_folder);
void write_run_id(const std::filesystem::path& run_folder, const std::string& id);

// Nothing if the place has no owner, like places of earlier versions.
std::optional<RunName> owner_of(const std::filesystem::path& place);
void sign_place(const std::filesystem::path& place, const RunName& owner);

// True if the checkpoints in a place of `owner` are this run's. `own.id` is empty if the run's folder has none, like a new one.
bool is_own(const RunName& owner, const RunName& own);

}  // namespace welkin::train
