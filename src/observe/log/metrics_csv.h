// SPDX-License-Identifier: Apache-2.0
// The scalars of a run as one table, metrics.csv: a row per step at which there are some, a column per tag (RFC 4180, for pandas
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
  // `resume_from`: the file goes on, without its rows from that step on. Empty: it begins, and a file that is there becomes
  // metrics.old-<n>.csv; so does one that is no such table. Throws DataError.
  MetricsCsv(std::filesystem::path path, std::optional<int64_t> resume_from);

  // Steps never go down. Values of one step stand in one row.
  void add(std::string_view tag, double value, int64_t step, int64_t epoch);
  // Hands all rows to the system. When that fails (DataError) they stay, to be written with the next ones.
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
  size_t columns_in_file_ = 0;  // of tags
  std::vector<Row> rows_;       // not in the file, or the last one of it: that may still grow, and every flush rewrites it
  uint64_t end_ = 0;            // of what in the file is final
};

}  // namespace welkin::observe
