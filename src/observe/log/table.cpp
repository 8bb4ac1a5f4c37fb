// SPDX-License-Identifier: Apache-2.0
#include "observe/log/table.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace welkin::observe {
namespace {

size_t code_points(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

std::string padded(const std::string& text, size_t width, Align align) {
  const std::string blanks(width - code_points(text), ' ');
  return align == Align::Left ? text + blanks : blanks + text;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = join(cells, "  ");
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  WELKIN_CHECK(cells.size() == columns_.size(),
               cat("a row of ", cells.size(), " cells in a table of ", columns_.size(), " columns"));
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = code_points(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, code_points(row[i]));
    widths.push_back(width);
  }
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(padded(columns_[i].title, widths[i], columns_[i].align));
    rules.push_back(std::string(widths[i], '-'));
  }
  std::string out = line_of(titles) + line_of(rules);
  for (const auto& row : rows_) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < row.size(); ++i) cells.push_back(padded(row[i], widths[i], columns_[i].align));
    out += line_of(cells);
  }
  return out;
}

}  // namespace welkin::observe
