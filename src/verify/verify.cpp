// SPDX-License-Identifier: Apache-2.0
// The table of kinds, and the checks around every case: exact float32, the promises of meta.json, tensors that nobody compared.
#include "verify/verify.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "train/device/memory_report.h"
#include "train/device/process_settings.h"
#include "verify/cases/formula.h"
#include "verify/cases/table_cases.h"
#include "verify/engine/many_process_engine.h"
#include "verify/engine/model_comparison.h"

namespace welkin::verify {
namespace {

// Float32 means float32: no TF32 in products and convolutions while a case runs, on any device.
train::ProcessSettings exact_float32() {
  train::ProcessSettings settings = train::current_settings(c10::kCPU);
  settings.tf32_matmul = settings.tf32_convolution = false;
  return settings;
}

// Checks the test values of a case by formula.
void check_formula(const CaseFolder& folder, Rows& rows) {
  const auto& meta = folder.meta();
  if (!meta.contains("formula") || !meta.at("formula").contains("tests")) return;
  for (const auto& test : meta.at("formula").at("tests")) {
    const auto name = test.at("name").get<std::string>();
    const auto index = test.at("index").get<int64_t>();
    const uint64_t key = formula_key(test.at("salt").get<std::string>(), name);
    const float value =
        formula_value(key, static_cast<uint64_t>(index), test.at("scale").get<double>(), test.at("offset").get<double>());
    rows.push_back(compare_number(cat("formula ", name, "[", index, "]"), value, test.at("value").get<double>(), 0));
    rows.back().part = "case";
  }
}

Rows verify_model(const CaseFolder& folder, const VerifyOptions& options) {
  Rows rows;
  check_formula(folder, rows);
  const ModelCase c = load_model_case(folder);
  const bool many = options.ranks != nullptr && folder.kind() == "parallel";
  const auto engine = many ? many_process_engine(c, *options.ranks) : single_process_engine(c, options);
  Rows compared = compare_model_case(c, *engine, options);
  rows.insert(rows.end(), std::make_move_iterator(compared.begin()), std::make_move_iterator(compared.end()));
  return rows;
}

struct Kind {
  const char* name;
  Rows (*run)(const CaseFolder&, const VerifyOptions&);
};

constexpr Kind kKinds[] = {
    {"model", verify_model},           {"parallel", verify_model},          {"adam", verify_adam},
    {"optimizer", verify_optimizer},   {"schedules", verify_schedules},     {"losses", verify_losses},
    {"era5_pairs", verify_era5_pairs}, {"nbody_crops", verify_nbody_crops}, {"rank_groups", verify_rank_groups},
    {"splits", verify_splits},         {"unpatchify", verify_unpatchify},   {"initialisation", verify_initialisation}};

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
  }
  const auto close = nearest(name, case_kinds());
  throw DataError("reference", cat("unknown kind of case: kind=", name),
                  cat(close.empty() ? "Known are: " : "Did you mean: ", join(close.empty() ? case_kinds() : close, ", ")));
}

std::vector<LeftOut> left_out(const std::string& kind, bool without_backward) {
  std::vector<LeftOut> rules;
  if (kind == "parallel") {
    rules = {{"tutorial.", "numbers of the tutorial's parallel code, with its defects; a run of several ranks has its own"},
             {"serial_eps1e-5.", "the serial model with another epsilon: explains the tutorial's numbers"},
             {"weights_rank", "weights as the ranks hold them: compared by a run of several ranks"},
             {"grads_tutorial_rank", "gradients of the tutorial's parallel code, with its defects"}};
  }
  if (without_backward) {
    for (const char* stem : {"grads", "trajectory"}) rules.push_back({stem, "no bounds are stated for this precision"});
  }
  return rules;
}

void run_kind(const CaseFolder& folder, const VerifyOptions& options, CaseReport& report) {
  const auto add = [&](Rows rows) {
    report.rows.insert(report.rows.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  };
  report.kind = folder.kind();
  const Kind& kind = find_kind(report.kind);
  add(folder.broken_promises());
  add(kind.run(folder, options));
  const bool without_backward = options.amp_mode && *options.amp_mode != config::AmpMode::None;
  add(folder.leftovers(left_out(report.kind, without_backward)));
}

}  // namespace

int64_t CaseReport::count(Verdict verdict) const {
  return std::count_if(rows.begin(), rows.end(), [&](const ComparisonRow& row) { return row.verdict == verdict; });
}

const ComparisonRow* CaseReport::first_deviation() const {
  for (const ComparisonRow& row : rows) {
    if (row.verdict == Verdict::Fail) return &row;
  }
  return nullptr;
}

namespace {

// The text of the error that is being handled: that of a memory error, else `text`.
std::string unless_of_memory(const std::string& text) {
  const auto error = train::memory_error_if_any(/*limit_bytes=*/0);
  return error ? error->what() : text;
}

}  // namespace

CaseReport verify_case(const std::filesystem::path& folder, const VerifyOptions& options) {
  const train::ProcessSession session(exact_float32());
  const auto start = std::chrono::steady_clock::now();
  CaseReport report{.name = folder.filename().string(), .folder = folder.string()};
  try {
    const CaseFolder opened(folder);
    report.name = opened.name();
    run_kind(opened, options, report);
  } catch (const nlohmann::json::exception& error) {
    report.error =
        cat("[reference] the case's JSON is not as its kind demands: folder=", folder.string(), ", error=", error.what());
  } catch (const c10::Error& error) {
    report.error = unless_of_memory(cat("[reference] torch refuses what the case asks for: folder=", folder.string(),
                                        ", error=", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    report.error = unless_of_memory(error.what());
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::vector<std::string> case_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

}  // namespace welkin::verify
