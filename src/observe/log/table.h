// SPDX-License-Identifier: Apache-2.0
// Text tables with aligned columns, for the console and the log.
#pragma once

#include <string>
#include <vector>

namespace welkin::observe {

enum class Align { Left, Right };

struct Column {
  std::string title;
  Align align = Align::Left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns.
  void add_row(std::vector<std::string> cells);

  // Titles, a rule, the rows; columns two blanks apart, no blanks at line ends, every line ended. UTF-8 counts by code point.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace welkin::observe
