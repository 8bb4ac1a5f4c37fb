// SPDX-License-Identifier: Apache-2.0
// The tutorials' scaling tables: samples per second of IO, SYNTHETIC, FULL and NOCOMM (the step without its communication) over
// the number of ranks, their efficiencies, the share of communication, and rows for larger machines that a model predicts from
// what was measured. Torch-free.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/scaling/link_model.h"

namespace welkin::bench {

enum class ScalingKind {
  Weak,    // the batch of a rank stays the same
  Strong,  // the batch of all ranks stays the same
};
const char* scaling_name(ScalingKind kind);

using Rate = std::optional<double>;  // samples per second of all ranks, where it was measured

struct ScalingRow {
  int64_t ranks = 0;
  int64_t batch = 0;  // samples of a step over all ranks; 0: the file does not say
  Rate io{}, synthetic{}, full{}, nocomm{};
  int64_t gradient_bytes = 0;  // that a rank's step exchanges
  bool predicted = false;
};

struct ScalingTable {
  ScalingKind kind = ScalingKind::Weak;
  std::vector<ScalingRow> rows;  // by ranks, measured before predicted

  // A rate per rank over that of the fewest ranks; nothing where one of them was not measured.
  std::optional<double> efficiency(const ScalingRow& row, Rate ScalingRow::*rate) const;
};

// The share of a step that waits for communication: 1 - SYNTHETIC / NOCOMM.
std::optional<double> communication_fraction(const ScalingRow& row);

// A row from what `welkin bench --json` or benchy (train --enable_benchy) wrote. DataError where the file is none such.
ScalingRow read_scaling_row(const std::string& path);

// NOCOMM of the rows from benchy's files of runs with --noddp, whose SYNTHETIC it is. DataError where a row is missing.
void add_noddp(std::vector<ScalingRow>& rows, const std::vector<ScalingRow>& noddp);

// Sorted; of equal numbers of ranks the last one stays. DataError without any, and where the batches are not those of the kind.
ScalingTable scaling_table(ScalingKind kind, std::vector<ScalingRow> rows);

// Adds a row per number of ranks beyond those of the table: the rank's computation as in the largest measurement, plus the
// exchange of gradients by the fitted ring formula, of which the same share is hidden as was there. What was waited for beyond
// the exchange's own time stays as long as it was.
void predict_rows(ScalingTable& table, const LinkFit& exchange, const std::vector<int64_t>& ranks);

std::string scaling_text(const ScalingTable& table);
nlohmann::ordered_json scaling_json(const ScalingTable& table);

// Four plots as SVG documents with the end of their file names: throughput, efficiency, communication, step_time.
std::vector<std::pair<std::string, std::string>> scaling_plots(const ScalingTable& table);

}  // namespace welkin::bench
