// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/manifest.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::data::simulate {
namespace {

constexpr uint64_t kManifestLimit = 1 << 20;

std::filesystem::path manifest_path(const std::filesystem::path& folder) { return folder / "simulation.json"; }

}  // namespace

std::string Provenance::json() const {
  nlohmann::ordered_json object;
  for (const auto& [name, value] : facts) {
    std::visit([&, &key = name](const auto& v) { object[key] = v; }, value);
  }
  return object.dump(2) + "\n";
}

void write_provenance(Hdf5File& file, const Provenance& provenance) {
  for (const auto& [name, value] : provenance.facts) {
    if (const auto* text = std::get_if<std::string>(&value)) file.set_string("/", name, *text);
    if (const auto* number = std::get_if<double>(&value)) file.set_number("/", name, *number);
    if (const auto* integer = std::get_if<int64_t>(&value)) file.set_integer("/", name, *integer);
  }
}

bool already_simulated(const std::filesystem::path& folder, const Provenance& provenance, bool overwrite) {
  std::error_code ignored;
  if (!std::filesystem::exists(manifest_path(folder), ignored)) return false;
  if (overwrite) {
    std::error_code problem;
    if (!std::filesystem::remove(manifest_path(folder), problem) || problem) {
      throw DataError("simulate",
                      cat("cannot remove an old simulation.json: folder=", folder.string(), ", reason=", problem.message()),
                      "Name another folder with --out");
    }
    return false;
  }
  if (read_file(manifest_path(folder), kManifestLimit) == provenance.json()) return true;
  throw DataError("simulate",
                  cat("the folder holds the result of another simulation: folder=", folder.string(), ", see=simulation.json"),
                  "Name another folder with --out, or replace what is there with --overwrite");
}

void write_manifest(const std::filesystem::path& folder, const Provenance& provenance) {
  write_file_atomically(manifest_path(folder), provenance.json());
}

}  // namespace welkin::data::simulate
