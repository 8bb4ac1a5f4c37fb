// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/place_owner.h"

#include <nlohmann/json.hpp>
#include <random>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnerFile = "run.json";
constexpr const char* kIdFile = "run_id";
constexpr uint64_t kMostBytes = 1 << 16;
constexpr size_t kIdLength = 16;

bool is_id(const std::string& text) {
  return text.size() == kIdLength && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string draw_run_id() {
  std::random_device device;
  return hex_digits((uint64_t{device()} << 32) ^ device());
}

std::string run_id_in(const fs::path& run_folder) {
  try {
    std::string id = read_file(run_folder / kIdFile, kMostBytes);
    if (id.ends_with('\n')) id.pop_back();
    return is_id(id) ? id : std::string();
  } catch (const DataError&) {
    return {};
  }
}

void write_run_id(const fs::path& run_folder, const std::string& id) {
  write_file_atomically(run_folder / kIdFile, cat(id, "\n"));
}

std::optional<RunName> owner_of(const fs::path& place) {
  try {
    const auto said = nlohmann::json::parse(read_file(place / kOwnerFile, kMostBytes), nullptr, /*allow_exceptions=*/false);
    if (!said.is_object() || !said.contains("run") || !said["run"].is_string() || !said.contains("folder") ||
        !said["folder"].is_string()) {
      return {};
    }
    return RunName{.id = said["run"].get<std::string>(), .folder = said["folder"].get<std::string>()};
  } catch (const DataError&) {
    return {};
  }
}

void sign_place(const fs::path& place, const RunName& owner) {
  if (owner_of(place) == owner) return;
  make_folders(place);
  const nlohmann::json name{{"run", owner.id}, {"folder", owner.folder}};
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // a path need not be UTF-8
  write_file_atomically(place / kOwnerFile, name.dump(-1, ' ', false, kReplace) + "\n");
}

// A folder that was moved has its id, and so has a copy: the place is the original's as long as that is there.
bool is_own(const RunName& owner, const RunName& own) {
  if (own.id.empty()) return owner.folder == own.folder;
  if (owner.id != own.id) return false;
  std::error_code unknown;
  return owner.folder == own.folder || fs::equivalent(owner.folder, own.folder, unknown) || run_id_in(owner.folder) != own.id;
}

}  // namespace welkin::train
