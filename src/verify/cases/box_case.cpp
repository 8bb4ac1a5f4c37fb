// SPDX-License-Identifier: Apache-2.0
// Crops of boxes and their orientations: exact.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/box_dataset.h"
#include "data/formats/array_file.h"
#include "data/sample/rules.h"
#include "data/sample/sampler.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace box_case {

using Json = nlohmann::json;

constexpr int64_t kMostDraws = 4096;

struct Crop {
  at::Tensor input, target;
};

Crop read_crop(const data::BoxDataset& dataset, data::SamplePlan plan) {
  plan.region = data::whole(dataset.spec());
  Crop crop{at::empty(dataset.spec().input.shape, at::kFloat), at::empty(dataset.spec().target.shape, at::kFloat)};
  const auto span = [](at::Tensor& t) { return std::span<float>(t.mutable_data_ptr<float>(), static_cast<size_t>(t.numel())); };
  dataset.read(plan, {span(crop.input), span(crop.target)});
  return crop;
}

data::BoxDataset open_boxes(const CaseFolder& folder, const std::string& split, int64_t crop, data::Rules rules) {
  const auto path = folder.member(split + ".h5");
  const auto augmentation = rules == data::Rules::Tutorial ? data::Augmentation::Tutorial : data::Augmentation::Rotations;
  const auto file = data::open_array_file(path);
  return {data::open_box(file, "Nbody"),
          data::open_box(file, "Hydro"),
          {.source = path.string(),
           .crop = crop,
           .num_samples = 8,
           .augmentation = augmentation,
           .last_start = rules == data::Rules::Corrected}};
}

int32_t map_number(const Json& value) {
  const auto number = value.get<int64_t>();
  if (number >= 1 && number <= 24) return static_cast<int32_t>(number);
  throw DataError("reference", cat("the tutorials' maps are 1..24: number=", number), "Correct the case's draws");
}

void verify_crops(const CaseFolder& folder, const std::string& split, const Json& draws, int64_t crop, Rows& rows) {
  const StoredTensors& data = folder.need_tensors("data");
  const data::BoxDataset dataset = open_boxes(folder, split, crop, data::Rules::Tutorial);
  for (size_t i = 0; i < draws.size(); ++i) {
    const std::string name = cat(split, i);
    data::SamplePlan plan;
    plan.origin = {draws[i].at("x").get<int64_t>(), draws[i].at("y").get<int64_t>(), draws[i].at("z").get<int64_t>()};
    plan.orientation = data::tutorial_orientation(map_number(draws[i].at("rotation")));
    const int64_t last = folder.meta().at("box").at(split).get<int64_t>() - crop;
    if (std::ranges::any_of(plan.origin, [&](int64_t start) { return start < 0 || start > last; })) {
      rows.push_back(failed(name, cat("the crop lies outside the box: last start=", last)));
      continue;
    }
    const Crop got = read_crop(dataset, plan);
    rows.push_back(compare_exactly(name + ".input", got.input, data.get(name + ".input")));
    rows.push_back(compare_exactly(name + ".target", got.target, data.get(name + ".target")));
  }
}

// Starts are drawn from 0 to the last possible one, both met; the tutorials never draw the last. Chance of missing one of n
// starts in kMostDraws draws: below n exp(-kMostDraws / n).
void verify_starts(const CaseFolder& folder, const std::string& split, int64_t crop, Rows& rows) {
  const int64_t last = folder.meta().at("box").at(split).get<int64_t>() - crop;
  if (last < 1 || last > 128) return;
  for (const data::Rules rules : {data::Rules::Corrected, data::Rules::Tutorial}) {
    const data::BoxDataset dataset = open_boxes(folder, split, crop, rules);
    const data::Sampler sampler(kMostDraws, data::Order::Shuffled, 1);
    std::set<int64_t> starts;
    for (int64_t i = 0; i < kMostDraws; ++i) {
      for (const int64_t start : dataset.plan(sampler.at(0, i), {}).origin) starts.insert(start);
    }
    const bool tutorial = rules == data::Rules::Tutorial;
    const int64_t most = tutorial ? last - 1 : last;
    const bool equal = *starts.begin() == 0 && *starts.rbegin() == most && static_cast<int64_t>(starts.size()) == most + 1;
    rows.push_back(compare_flag(cat(tutorial ? "tutorial " : "", split, " crop starts 0..", most), equal,
                                cat("drawn: ", starts.size(), " starts in ", *starts.begin(), "..", *starts.rbegin())));
  }
}

using Matrix = std::array<std::array<int, 3>, 3>;

// out[i] = in[M i + b]: output axis a runs along input axis axis[a].
Matrix matrix_of(const data::Orientation& o) {
  Matrix m{};
  for (size_t a = 0; a < 3; ++a) m[static_cast<size_t>(o.axis[a])][a] = o.flip[a] ? -1 : 1;
  return m;
}

void verify_map(const Json& entry, Rows& rows) {
  const int32_t number = map_number(entry.at("index"));
  const data::Orientation& map = data::orientation(data::tutorial_orientation(number));
  const bool same = entry.at("transpose").get<std::array<int, 3>>() == map.axis &&
                    entry.at("flip_after_transpose").get<std::array<bool, 3>>() == map.flip &&
                    entry.at("matrix_out_to_in").get<Matrix>() == matrix_of(map);
  const int determinant = data::determinant(map);
  const bool proper =
      entry.at("determinant").get<int>() == determinant && entry.at("proper_rotation").get<bool>() == (determinant == 1);
  rows.push_back(
      compare_flag(cat("tutorial map ", number), same && proper, cat("another map or determinant: determinant=", determinant)));
}

// Our maps are the rotation group: 24 different maps of determinant 1. They include those that the tutorials lack.
void verify_rotations(const Json& table, Rows& rows) {
  std::set<Matrix> ours, tutorial;
  bool proper = true;
  for (const int32_t index : data::orientations_of(data::Augmentation::Rotations)) {
    ours.insert(matrix_of(data::orientation(index)));
    proper = proper && data::determinant(data::orientation(index)) == 1;
  }
  rows.push_back(compare_flag("24 proper rotations", proper && ours.size() == 24,
                              cat("different maps=", ours.size(), ", all proper=", proper)));
  std::set<int> improper;
  for (int32_t number = 1; number <= 24; ++number) {
    const data::Orientation& map = data::orientation(data::tutorial_orientation(number));
    tutorial.insert(matrix_of(map));
    if (data::determinant(map) != 1) improper.insert(number);
  }
  const auto missing = table.at("proper_missing").get<std::set<Matrix>>();
  const bool added = std::ranges::all_of(missing, [&](const Matrix& m) { return ours.contains(m) && !tutorial.contains(m); });
  rows.push_back(compare_flag("rotations that the tutorial lacks", added && missing.size() == improper.size(),
                              cat("stated=", missing.size(), ", reflections=", improper.size())));
  rows.push_back(compare_flag("tutorial reflections", table.at("improper").get<std::set<int>>() == improper,
                              cat("got=", join(improper, ","))));
}

void verify_cube(const StoredTensors& data, Rows& rows) {
  if (!data.contains("cube")) return;
  const at::Tensor cube = data.get("cube").contiguous();
  if (cube.dim() != 4 || cube.scalar_type() != at::kFloat || cube.numel() == 0) {
    rows.push_back(failed("cube", cat("wrong shape: stored=", cube.sizes())));
    return;
  }
  const float* values = cube.const_data_ptr<float>();
  const auto box = data::make_box({cube.size(0), {cube.size(1), cube.size(2), cube.size(3)}},
                                  std::vector<float>(values, values + cube.numel()));
  const data::BoxDataset dataset(box, box,
                                 {.source = "cube", .crop = cube.size(1), .augmentation = data::Augmentation::Tutorial});
  for (int32_t number = 1; number <= 24; ++number) {
    const std::string name = cat("cube.rot", number);
    if (!data.contains(name)) continue;
    data::SamplePlan plan;
    plan.orientation = data::tutorial_orientation(number);
    rows.push_back(compare_exactly(name, read_crop(dataset, plan).input, data.get(name)));
  }
}

}  // namespace box_case

Rows verify_nbody_crops(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  const auto crop = folder.meta().at("crop").get<int64_t>();
  const auto draws = folder.json("draws.json");
  for (const auto& [split, entries] : draws.items()) {
    if (!entries.is_array()) continue;  // the source of the numbers
    box_case::verify_crops(folder, split, entries, crop, rows);
    box_case::verify_starts(folder, split, crop, rows);
  }
  const auto rotations = folder.json("rotations.json");
  for (const auto& entry : rotations.at("table")) box_case::verify_map(entry, rows);
  box_case::verify_rotations(rotations, rows);
  box_case::verify_cube(folder.need_tensors("data"), rows);
  return rows;
}

}  // namespace welkin::verify
