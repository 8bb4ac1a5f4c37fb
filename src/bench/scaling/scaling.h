// SPDX-License-Identifier: Apache-2.0
// The tutorials' scaling tables: samples per second of IO, SYNTHETIC, FULL and NOCOMM (the step without its communication) over
// the number of ranks, efficiencies, the fraction of communication, and rows for larger machines that a model predicts from
// the measurements. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/link_model.h"

namespace welkin::bench {

enum class ScalingKind {
  Weak,    // the batch per rank is constant
  Strong,  // the global batch is constant
};
const char* scaling_name(ScalingKind kind);

using Rate = std::optional<double>;  // samples per second of all ranks; nothing if not measured

struct ScalingRow {
  int64_t ranks = 0;
  int64_t batch = 0;  // samples of a step over all ranks; 0: not in the file
  Rate io{}, synthetic{}, full{}, nocomm{};
  int64_t gradient_bytes = 0;  // bytes of gradients that a rank exchanges in a step
  bool predicted = false;
};

struct ScalingTable {
  ScalingKind kind = ScalingKind::Weak;
  std::vector<ScalingRow> rows;  // by number of ranks, measured before predicted

  // The rate per rank over that of the fewest ranks; nothing if one of them was not measured.
  std::optional<double> efficiency(const ScalingRow& row, Rate ScalingRow::*rate) const;
};

// The share of a step that waits for communication: 1 - SYNTHETIC / NOCOMM.
std::optional<double> communication_fraction(const ScalingRow& row);

// Reads a row that `welkin bench --json` or benchy (train --enable_benchy) wrote. DataError for other files.
ScalingRow read_scaling_row(const std::string& path);

// Sets NOCOMM of the rows to SYNTHETIC of benchy's runs with --noddp. DataError if a row is missing.
void add_noddp(std::vector<ScalingRow>& rows, const std::vector<ScalingRow>& noddp);

// Sorts the rows; of rows with equal ranks the last one stays. DataError without rows, and if the batches do not fit the kind.
ScalingTable scaling_table(ScalingKind kind, std::vector<ScalingRow> rows);

// Adds a row per number of ranks beyond the table's largest: the computation per rank of the largest measurement, plus the
// gradient exchange by the fitted ring formula, with the same fraction hidden. Waiting beyond the exchange's own time stays the
// same.
void predict_rows(ScalingTable& table, const plan::LinkFit& exchange, const std::vector<int64_t>& ranks);

std::string scaling_text(const ScalingTable& table);
nlohmann::ordered_json scaling_json(const ScalingTable& table);

// Four SVG plots, each with its file name's ending: throughput, efficiency, communication, step_time.
std::vector<std::pair<std::string, std::string>> scaling_plots(const ScalingTable& table);

}  // namespace welkin::bench
