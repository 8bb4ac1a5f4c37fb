// SPDX-License-Identifier: Apache-2.0
// Whose checkpoints a place outside of the run's folder holds: run.json in it says it. Paths of places have the run's
// configuration, size and number alone, so that runs of two log roots would share one.
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

// Which run the run folder is that of; empty: it has no id. A folder that is moved keeps it.
std::string run_id_in(const std::filesystem::path& run_folder);
void write_run_id(const std::filesystem::path& run_folder, const std::string& id);

// Nothing where the place has no owner, as those of earlier versions.
std::optional<RunName> owner_of(const std::filesystem::path& place);
void sign_place(const std::filesystem::path& place, const RunName& owner);

// Whether what is in a place of `owner` is this run's. `own.id` is empty where the run's folder has none, as a new one.
bool is_own(const RunName& owner, const RunName& own);

}  // namespace welkin::train
