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

  // Titles, a rule, and the rows, two blanks between columns and none at line ends. Every line is ended. UTF-8 counts by code
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace welkin::observe
