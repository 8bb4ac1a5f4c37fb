// SPDX-License-Identifier: Apache-2.0
// Provenance of simulated files: written into every file and, when all files of a folder are complete, as its simulation.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data::simulate {

// Facts in the order in which they are to be read. Numbers keep all their digits.
using Fact = std::variant<std::string, double, int64_t>;
struct Provenance {
  std::vector<std::pair<std::string, Fact>> facts;

  void add(std::string name, Fact value) { facts.emplace_back(std::move(name), std::move(value)); }
  std::string json() const;
};

// One attribute per fact on the file's root.
void write_provenance(Hdf5File& file, const Provenance& provenance);

// True: `folder` holds the finished result of exactly these facts. False: there is none. DataError: it holds another one, and
// `overwrite` is not set (with it, the old simulation.json is removed before anything else is).
bool already_simulated(const std::filesystem::path& folder, const Provenance& provenance, bool overwrite);

// Marks the folder as complete: written last.
void write_manifest(const std::filesystem::path& folder, const Provenance& provenance);

// Progress of a simulation: what is being made, steps done, steps in all. May be called by several threads, one at a
// time.
using SimulationProgress = std::function<void(std::string_view what, int64_t done, int64_t total)>;

}  // namespace welkin::data::simulate
