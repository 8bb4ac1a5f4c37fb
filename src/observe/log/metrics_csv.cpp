// SPDX-License-Identifier: Apache-2.0
#include "observe/log/metrics_csv.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstColumns = "step,epoch";
constexpr uint64_t kLargestFile = uint64_t{1} << 31;

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

// As many digits as needed to read the same number back.
std::string csv_number(double value) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr};
}

// The cells of a header line; nothing if a quote is not closed.
std::optional<std::vector<std::string>> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return quoted ? std::nullopt : std::optional(cells);
}

std::optional<int64_t> step_of_row(std::string_view row) {
  int64_t step = 0;
  const auto [end, error] = std::from_chars(row.data(), row.data() + row.size(), step);
  if (error != std::errc() || end == row.data() + row.size() || *end != ',') return {};
  return step;
}

// Whole lines only: a killed run may have left an incomplete row.
std::vector<std::string_view> csv_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

}  // namespace

MetricsCsv::MetricsCsv(fs::path path, std::optional<int64_t> resume_from) : path_(std::move(path)) {
  if (resume_from && fs::exists(path_)) {
    go_on(*resume_from);
  } else {
    begin();
  }
}

void MetricsCsv::begin() {
  if (fs::exists(path_)) move_aside();
  const std::string head = header();
  write_file_atomically(path_, head);
  end_ = head.size();
}

void MetricsCsv::go_on(int64_t step) {
  const std::string text = read_file(path_, kLargestFile);
  const std::vector<std::string_view> lines = csv_lines(text);
  const auto cells = lines.empty() ? std::nullopt : csv_cells(lines.front());
  if (!cells || cells->size() < 2 || join(std::vector(cells->begin(), cells->begin() + 2), ",") != kFirstColumns) return begin();
  tags_.assign(cells->begin() + 2, cells->end());
  columns_in_file_ = tags_.size();
  std::string kept = cat(lines.front(), "\n");
  for (const std::string_view line : lines) {
    const auto found = step_of_row(line);
    if (!found || *found >= step) continue;
    kept += line;
    kept += '\n';
  }
  write_file_atomically(path_, kept);
  end_ = kept.size();
}

void MetricsCsv::move_aside() const {
  fs::path target;
  for (int number = 1; target.empty() || fs::exists(target); ++number) {
    target = path_.parent_path() / cat(path_.stem().string(), ".old-", number, path_.extension().string());
  }
  std::error_code error;
  fs::rename(path_, target, error);
  if (error) throw file_error("move aside", path_, error.value());
}

size_t MetricsCsv::column(std::string_view tag) {
  const auto found = std::find(tags_.begin(), tags_.end(), tag);
  if (found != tags_.end()) return static_cast<size_t>(found - tags_.begin());
  tags_.emplace_back(tag);
  return tags_.size() - 1;
}

void MetricsCsv::add(std::string_view tag, double value, int64_t step, int64_t epoch) {
  if (rows_.empty() || rows_.back().step != step) rows_.push_back({.step = step, .epoch = epoch});
  rows_.back().values[column(tag)] = value;
}

std::string MetricsCsv::header() const {
  std::string line(kFirstColumns);
  for (const std::string& tag : tags_) line += cat(",", csv_cell(tag));
  return line + "\n";
}

std::string MetricsCsv::text_of(const Row& row) const {
  std::string line = cat(row.step, ",", row.epoch);
  for (size_t i = 0; i < tags_.size(); ++i) {
    const auto value = row.values.find(i);
    line += value == row.values.end() ? "," : cat(",", csv_number(value->second));
  }
  return line + "\n";
}

// Adds a column: the header, and an empty cell in every earlier row.
void MetricsCsv::widen() {
  const std::string cells(tags_.size() - columns_in_file_, ',');
  std::string text = header();
  const std::string stored = read_file(path_, kLargestFile).substr(0, end_);
  const auto lines = csv_lines(stored);
  for (size_t i = 1; i < lines.size(); ++i) text += cat(lines[i], cells, "\n");
  write_file_atomically(path_, text);
  end_ = text.size();
  columns_in_file_ = tags_.size();
}

void MetricsCsv::flush() {
  if (rows_.empty()) return;
  if (columns_in_file_ < tags_.size()) widen();
  const FileDescriptor file = open_file(path_, O_WRONLY);
  if (::ftruncate(file.get(), static_cast<off_t>(end_)) != 0 || ::lseek(file.get(), 0, SEEK_END) < 0) {
    throw file_error("write", path_, errno);
  }
  std::string final_rows;
  for (size_t i = 0; i + 1 < rows_.size(); ++i) final_rows += text_of(rows_[i]);
  write_fully(file, path_, final_rows + text_of(rows_.back()));
  end_ += final_rows.size();
  rows_.erase(rows_.begin(), std::prev(rows_.end()));
}

}  // namespace welkin::observe
