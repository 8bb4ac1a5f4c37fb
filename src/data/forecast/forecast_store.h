// SPDX-License-Identifier: Apache-2.0
// A forecast file while it is made: its data and a journal of what is written lie in OUTPUT.unfinished/ until everything is
// there, then the data takes its name in one rename. A run that was ended goes on where its journals end. Any number of processes
// write at once, each with a journal of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "data/forecast/forecast_layout.h"

namespace welkin::data {

class ForecastStore {
 public:
  // ConfigError for a name that does not end in .zarr or .nc, for an output that exists, and for one that was begun by another
  // request; DataError for netCDF, which is not compressed, that does not fit on its disk. `request`: all that the values follow
  // from, in words.
  static void check(const std::filesystem::path& output, const ForecastLayout& layout, const std::string& request);

  // Lays out the file, or takes up one that was begun. The first process makes its store before the others do.
  ForecastStore(std::filesystem::path output, const ForecastLayout& layout, const std::string& request, int64_t rank);

  bool is_done(int64_t unit) const { return done_.contains(unit); }
  int64_t num_done() const { return static_cast<int64_t>(done_.size()); }  // when this store was made

  // One field, (height, width) row-major.
  void write(int64_t channel, int64_t start, int64_t member, int64_t lead, std::span<const float> field);
  // All fields of this unit are written.
  void finish_unit(int64_t unit);

  // Called by the first process when the others are done with all units.
  void publish();

 private:
  void read_journals();

  std::filesystem::path output_, folder_, data_, journal_;
  ForecastLayout layout_;
  std::unique_ptr<ArrayWriter> writer_;
  std::set<int64_t> done_;
};

}  // namespace welkin::data
