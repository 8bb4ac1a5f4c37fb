// SPDX-License-Identifier: Apache-2.0
// A table per case, and JSON.
#include "verify/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text.h"
#include "observe/log/table.h"

namespace welkin::verify {
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

// The share of its bounds that a row uses: 1 is at the bound.
double used(const ComparisonRow& row) {
  const auto share = [](double value, double bound) { return value == 0 ? 0.0 : value / bound; };
  return std::max(share(row.max_over_max, row.tolerance_max_over_max), share(row.rel_l2, row.tolerance_rel_l2));
}

std::string short_number(double value) {
  std::ostringstream out;
  out.precision(3);
  out << value;
  return out.str();
}

std::string worst_text(const CaseReport& report) {
  const ComparisonRow* worst = nullptr;
  for (const ComparisonRow& row : report.rows) {
    if (row.verdict != Verdict::Skipped && (worst == nullptr || used(row) > used(*worst))) worst = &row;
  }
  return worst == nullptr ? "" : cat(worst->tensor, " at ", short_number(100 * used(*worst)), " % of its bound");
}

// The module of a model's case to which a row belongs: "correct.act.block1.attn" -> "blocks.1.attn", the gradient of
// "head.weight" -> "head". Empty if the row belongs to no module.
std::string layer_of(const ComparisonRow& row) {
  if (row.part == "gradient") return row.tensor.substr(0, row.tensor.rfind('.'));
  const size_t act = row.tensor.find("act.");
  if (row.part != "forward" || act == std::string::npos) return "";
  const std::string name = row.tensor.substr(act + 4);
  if (name == "tokens") return "pos_embed";
  return name.starts_with("block") ? cat("blocks.", name.substr(5)) : name;
}

std::string rows_text(const CaseReport& report, bool brief) {
  using observe::Align;
  observe::Table table({{"tensor", Align::Left},
                        {"part", Align::Left},
                        {"max abs", Align::Right},
                        {"max/max", Align::Right},
                        {"bound", Align::Right},
                        {"rel l2", Align::Right},
                        {"bound", Align::Right},
                        {"verdict", Align::Left},
                        {"note", Align::Left}});
  bool any = false;
  for (const ComparisonRow& row : report.rows) {
    if (brief && row.verdict != Verdict::Fail) continue;
    any = true;
    table.add_row({row.tensor, row.part, short_number(row.max_abs), short_number(row.max_over_max),
                   short_number(row.tolerance_max_over_max), short_number(row.rel_l2), short_number(row.tolerance_rel_l2),
                   verdict_name(row.verdict), row.reason});
  }
  return any ? table.text() : "";
}

nlohmann::json finite_or_null(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json row_json(const ComparisonRow& row) {
  return {{"tensor", row.tensor},
          {"part", row.part},
          {"max_abs", finite_or_null(row.max_abs)},
          {"max_over_max", finite_or_null(row.max_over_max)},
          {"rel_l2", finite_or_null(row.rel_l2)},
          {"tolerance_max_over_max", finite_or_null(row.tolerance_max_over_max)},
          {"tolerance_rel_l2", finite_or_null(row.tolerance_rel_l2)},
          {"verdict", row.verdict == Verdict::Fail ? "fail" : verdict_name(row.verdict)},
          {"reason", row.reason}};
}

}  // namespace

std::string report_text(const CaseReport& report, bool brief) {
  std::string text = cat(report.name, " (", report.kind.empty() ? "?" : report.kind, "): ", report.passed() ? "pass" : "FAIL",
                         ", ", report.count(Verdict::Pass), " compared, ", report.count(Verdict::Fail), " failed, ",
                         report.count(Verdict::Skipped), " skipped, ", short_number(report.seconds), " s");
  const std::string worst = worst_text(report);
  text += worst.empty() ? "\n" : cat("; nearest: ", worst, "\n");
  if (!report.error.empty()) text += cat("  error: ", report.error, "\n");
  if (const ComparisonRow* first = report.first_deviation()) {
    text += cat("  first to deviate: ", first->tensor, first->part.empty() ? "" : cat(" (", first->part, ")"));
    const std::string layer = layer_of(*first);
    text += layer.empty() ? "\n" : cat(", layer ", layer, "\n");
  }
  return text + rows_text(report, brief);
}

std::string summary_text(const std::vector<CaseReport>& reports) {
  std::vector<std::string> bad;
  for (const CaseReport& report : reports) {
    if (!report.passed()) bad.push_back(report.name);
  }
  if (bad.empty()) return cat("all ", reports.size(), " cases pass\n");
  return cat(bad.size(), " of ", reports.size(), " cases FAIL: ", join(bad, ", "), "\n");
}

std::string report_json(const std::vector<CaseReport>& reports) {
  nlohmann::json cases = nlohmann::json::array();
  bool passed = !reports.empty();
  for (const CaseReport& report : reports) {
    passed = passed && report.passed();
    nlohmann::json rows = nlohmann::json::array();
    for (const ComparisonRow& row : report.rows) rows.push_back(row_json(row));
    const ComparisonRow* first = report.first_deviation();
    cases.push_back(
        {{"name", report.name},
         {"kind", report.kind},
         {"folder", report.folder},
         {"passed", report.passed()},
         {"error", report.error.empty() ? nlohmann::json() : nlohmann::json(report.error)},
         {"first_deviation", first == nullptr ? nlohmann::json() : nlohmann::json(first->tensor)},
         {"first_layer", first == nullptr || layer_of(*first).empty() ? nlohmann::json() : nlohmann::json(layer_of(*first))},
         {"seconds", report.seconds},
         {"rows", std::move(rows)}});
  }
  // Names come from hostile files: bytes that are no UTF-8 are replaced.
  return nlohmann::json{{"passed", passed}, {"cases", std::move(cases)}}.dump(1, ' ', false,
                                                                              nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace welkin::verify
