// SPDX-License-Identifier: Apache-2.0
// A table per case, and JSON.
#include "train/reference/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text.h"
#include "observe/table.h"

namespace welkin::train::reference {
namespace {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Pass:
      return "pass";
    case Verdict::Fail:
      return "FAIL";
    case Verdict::Skipped:
      return "skipped";
  }
  return "";
}

// How much of its bounds a row uses: 1 is at the bound.
double used(const ComparisonRow& row) {
  return std::max(row.max_over_max / row.tolerance_max_over_max, row.rel_l2 / row.tolerance_rel_l2);
}

std::string short_number(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

std::string worst_text(const ModelReport& report) {
  const ComparisonRow* worst = nullptr;
  for (const ComparisonRow& row : report.rows) {
    if (row.verdict != Verdict::Skipped && (worst == nullptr || used(row) > used(*worst))) worst = &row;
  }
  return worst == nullptr ? "" : cat(worst->tensor, " at ", short_number(100 * used(*worst)), " % of its bound");
}

std::string rows_text(const ModelReport& report, bool all) {
  observe::Table table({{"tensor"},
                        {"max/max", observe::Align::Right},
                        {"bound", observe::Align::Right},
                        {"rel l2", observe::Align::Right},
                        {"bound", observe::Align::Right},
                        {"verdict"},
                        {"note"}});
  bool any = false;
  for (const ComparisonRow& row : report.rows) {
    if (!all && row.verdict != Verdict::Fail) continue;
    any = true;
    table.add_row({row.tensor, short_number(row.max_over_max), short_number(row.tolerance_max_over_max), short_number(row.rel_l2),
                   short_number(row.tolerance_rel_l2), verdict_name(row.verdict), row.reason});
  }
  return any ? table.text() : "";
}

nlohmann::json finite_or_null(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json row_json(const ComparisonRow& row) {
  return {{"tensor", row.tensor},
          {"max_abs", finite_or_null(row.max_abs)},
          {"max_over_max", finite_or_null(row.max_over_max)},
          {"rel_l2", finite_or_null(row.rel_l2)},
          {"tolerance_max_over_max", finite_or_null(row.tolerance_max_over_max)},
          {"tolerance_rel_l2", finite_or_null(row.tolerance_rel_l2)},
          {"verdict", row.verdict == Verdict::Fail ? "fail" : verdict_name(row.verdict)},
          {"reason", row.reason}};
}

}  // namespace

std::string report_text(const std::vector<ModelReport>& reports, bool all) {
  std::string text;
  for (const ModelReport& report : reports) {
    text += cat(report.name, ": ", report.passed() ? "pass" : "FAIL", ", ", report.count(Verdict::Pass), " compared, ",
                report.count(Verdict::Fail), " failed, ", report.count(Verdict::Skipped), " skipped, ",
                short_number(report.seconds), " s; nearest: ", worst_text(report), "\n", rows_text(report, all));
  }
  return text;
}

std::string report_json(const std::vector<ModelReport>& reports) {
  nlohmann::json cases = nlohmann::json::array();
  for (const ModelReport& report : reports) {
    nlohmann::json rows = nlohmann::json::array();
    for (const ComparisonRow& row : report.rows) rows.push_back(row_json(row));
    cases.push_back({{"name", report.name}, {"passed", report.passed()}, {"seconds", report.seconds}, {"rows", std::move(rows)}});
  }
  return nlohmann::json{{"cases", std::move(cases)}}.dump(1) + "\n";
}

}  // namespace welkin::train::reference
