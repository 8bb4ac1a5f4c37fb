// SPDX-License-Identifier: Apache-2.0
// The scalars of a run as one table, metrics.csv: a row per step with scalars, a column per tag (RFC 4180, for pandas
// and spreadsheets). Cells without a value are empty. One writer per run. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace welkin::observe {

class MetricsCsv {
 public:
  // `resume_from`: continues the file without its rows from that step on. Empty: begins a new file; an existing one is renamed
  // to metrics.old-<n>.csv, as is any file that is not such a table. Throws DataError.
  MetricsCsv(std::filesystem::path path, std::optional<int64_t> resume_from);

  // Steps never decrease. Values of one step share a row.
  void add(std::string_view tag, double value, int64_t step, int64_t epoch);
  // Passes all rows to the system. On failure (DataError) they are kept and written with the next ones.
  void flush();

 private:
  struct Row {
    int64_t step = 0, epoch = 0;
    std::map<size_t, double> values{};  // by column
  };
  void begin();
  void go_on(int64_t step);
  void move_aside() const;
  size_t column(std::string_view tag);
  std::string header() const;
  std::string text_of(const Row& row) const;
  void widen();

  std::filesystem::path path_;
  std::vector<std::string> tags_;
  size_t columns_in_file_ = 0;  // number of tags with a column in the file
  std::vector<Row> rows_;       // rows not in the file, and its last one, which may still change: every flush rewrites it
  uint64_t end_ = 0;            // end of the final part of the file
};

}  // namespace welkin::observe
