// SPDX-License-Identifier: Apache-2.0
// The pairs of times that are read from yearly files, and their normalisation: exact.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "data/datasets/channel_statistics.h"
#include "data/datasets/era5_dataset.h"
#include "data/sample/sampler.h"
#include "verify/cases/table_cases.h"

namespace welkin::verify {
namespace field_pair_case {

using Json = nlohmann::json;

struct Source {
  const CaseFolder& folder;
  int64_t height, width;

  data::Era5Options options(const std::string& years, int64_t lead, data::Rules rules, const std::string& suffix = "") const {
    return {.folder = folder.member(years),
            .height = height,
            .width = width,
            .lead = lead,
            .means = folder.path() / ("global_means" + suffix + ".npy"),
            .stds = folder.path() / ("global_stds" + suffix + ".npy"),
            .rules = rules};
  }
};

// The action of the tutorials' loader at an index, in the words of the table.
std::string tutorial_step(const data::Era5Dataset& dataset, int64_t index) {
  try {
    const data::SamplePlan plan = dataset.plan({index, 0}, {});
    return cat(plan.file, ":", plan.time);
  } catch (const DataError&) {
    return "error";
  }
}

void verify_tutorial_pairs(const Source& source, const Json& entry, const std::string& name, Rows& rows) {
  const data::Era5Dataset dataset(
      source.options(entry.at("folder").get<std::string>(), entry.at("dt").get<int64_t>(), data::Rules::Tutorial));
  rows.push_back(compare_number("tutorial " + name + " count", static_cast<double>(dataset.size()),
                                entry.at("len_tutorial").get<double>(), 0));
  std::vector<std::string> wrong;
  for (const Json& sample : entry.at("tutorial")) {
    const auto index = sample.at("index").get<int64_t>();
    const std::string wanted = sample.contains("error")
                                   ? "error"
                                   : cat(sample.at("year_index").get<int64_t>(), ":", sample.at("input_step").get<int64_t>());
    const std::string got = tutorial_step(dataset, index);
    if (got != wanted) wrong.push_back(cat("index ", index, " got ", got, " wanted ", wanted));
  }
  rows.push_back(compare_flag("tutorial " + name + " pairs", wrong.empty(), join(wrong, ", ")));
}

void verify_correct_pairs(const Source& source, const Json& entry, const std::string& name, Rows& rows) {
  const auto lead = entry.at("dt").get<int64_t>();
  const data::Era5Dataset dataset(source.options(entry.at("folder").get<std::string>(), lead, data::Rules::Corrected));
  std::vector<std::vector<int64_t>> wanted, got;
  for (const auto& [key, value] : entry.items()) {
    if (key.starts_with("correct_pairs")) wanted = value.get<std::vector<std::vector<int64_t>>>();
  }
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const data::SamplePlan plan = dataset.plan({index, 0}, {});
    got.push_back({plan.file, plan.time, plan.time + lead});
  }
  rows.push_back(
      compare_number(name + " count", static_cast<double>(dataset.size()), entry.at("correct_count").get<double>(), 0));
  rows.push_back(compare_flag(name + " pairs", got == wanted, cat("other pairs: got ", got.size(), ", wanted ", wanted.size())));
}

void verify_limits(const Source& source, const Json& pairs, Rows& rows) {
  if (!pairs.contains("limit_nsamples") || pairs.at("cases").empty()) return;
  const Json& first = pairs.at("cases").front();
  for (const Json& entry : pairs.at("limit_nsamples")) {
    data::Era5Options options =
        source.options(first.at("folder").get<std::string>(), first.at("dt").get<int64_t>(), data::Rules::Tutorial);
    if (!entry.at("limit_nsamples").is_null()) options.limit = entry.at("limit_nsamples").get<int64_t>();
    rows.push_back(compare_number(cat("tutorial limit_nsamples=", entry.at("limit_nsamples").dump()),
                                  static_cast<double>(data::Era5Dataset(options).size()), entry.at("len").get<double>(), 0));
  }
}

at::Tensor normalised(const std::vector<int64_t>& shape, std::vector<float> values, const std::vector<double>& mean,
                      const std::vector<double>& std) {
  data::normalise(values, mean, std);
  at::Tensor tensor = at::empty(shape, at::kFloat);
  std::ranges::copy(values, tensor.mutable_data_ptr<float>());
  return tensor;
}

// All samples "<prefix>.sample<i>.input" and ".target" of one data set.
void verify_samples(const data::Era5Dataset& dataset, const std::string& prefix, const StoredTensors& samples, Rows& rows) {
  const data::SampleSpec& spec = dataset.spec();
  const data::Region region = data::whole(spec);
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const std::string name = cat(prefix, ".sample", index);
    if (!samples.contains(name + ".input") && !samples.contains(name + ".target")) continue;
    const auto size = [](const data::ArraySpec& array) {
      return static_cast<size_t>(array.shape[0] * array.shape[1] * array.shape[2]);
    };
    std::vector<float> input(size(spec.input)), target(size(spec.target));
    dataset.read(dataset.plan({index, 0}, region), {input, target});
    if (samples.contains(name + ".input")) {
      rows.push_back(compare_exactly(name + ".input", normalised(spec.input.shape, input, spec.input_mean, spec.input_std),
                                     samples.get(name + ".input")));
    }
    if (samples.contains(name + ".target")) {
      rows.push_back(compare_exactly(name + ".target", normalised(spec.target.shape, target, spec.target_mean, spec.target_std),
                                     samples.get(name + ".target")));
    }
  }
}

void verify_normalisation(const Source& source, const Json& pairs, Rows& rows) {
  const StoredTensors* samples = source.folder.tensors("samples");
  if (samples == nullptr || pairs.at("cases").empty()) return;
  // "dt{dt}.sample{i}.input/target: sample i of folder short_first"
  std::string years = pairs.at("cases").front().at("folder").get<std::string>();
  const auto text = source.folder.meta().value("tensors", std::string());
  if (const size_t at = text.find("of folder "); at != std::string::npos) {
    const size_t begin = at + 10;
    years = text.substr(begin, text.find_first_of(" ,;.", begin) - begin);
  }
  std::set<std::string> prefixes;
  for (const std::string& name : samples->names()) prefixes.insert(name.substr(0, name.find('.')));
  for (const std::string& prefix : prefixes) {
    const bool wide = prefix.starts_with("f64stats");
    if (!wide && !prefix.starts_with("dt")) continue;  // reported as not compared
    const auto lead = wide ? 1 : static_cast<int64_t>(number_after(prefix, "dt", 1));
    verify_samples(data::Era5Dataset(source.options(years, lead, data::Rules::Tutorial, wide ? "_f64" : "")), prefix, *samples,
                   rows);
  }
}

// The exact permutations are no requirement. Required: an epoch reads every sample once, shards are equal, epochs differ.
void verify_orders(const CaseFolder& folder, Rows& rows) {
  if (!std::filesystem::exists(folder.path() / "orders.json")) return;
  const Json orders = folder.json("orders.json");
  int64_t number = 0;
  for (const Json& entry : orders.at("numpy_permutation_source")) {
    const bool train = entry.at("train").get<bool>();
    const auto shards = entry.at("num_shards").get<int64_t>();
    const auto per_shard = entry.at("n_samples_shard").get<int64_t>();
    const auto batch = entry.at("batch_size").get<int64_t>();
    const std::string name = cat("order ", number++, train ? " (training)" : " (validation)");
    if (shards < 1 || per_shard < 1 || batch < 1 || shards * per_shard > (1 << 20)) {
      rows.push_back(failed(name, "sizes are out of range"));
      continue;
    }
    rows.push_back(compare_number(name + " steps of an epoch", static_cast<double>(per_shard / batch),
                                  entry.at("steps_per_epoch").get<double>(), 0));
    const int64_t size = shards * per_shard;
    const data::Sampler sampler(size, train ? data::Order::Shuffled : data::Order::Sequential, 333);
    std::vector<std::vector<int64_t>> epochs(2);
    bool complete = true;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      auto& order = epochs[static_cast<size_t>(epoch)];
      for (int64_t i = 0; i < size; ++i) order.push_back(sampler.at(epoch, i).index);
      complete = complete && static_cast<int64_t>(std::set<int64_t>(order.begin(), order.end()).size()) == size;
    }
    const bool differs = epochs[0] != epochs[1];
    rows.push_back(compare_flag(name + " reads every sample once", complete, "samples repeat"));
    if (size > 8 || !train)
      rows.push_back(compare_flag(name + (train ? " changes with the epoch" : " stays"), differs == train, "it does not"));
  }
  rows.push_back(
      skipped("orders of numpy's and torch's generators", "reproducing these very permutations is no requirement of the case"));
}

}  // namespace field_pair_case

Rows verify_era5_pairs(const CaseFolder& folder, const VerifyOptions& /*options*/) {
  Rows rows;
  const auto size = folder.meta().at("img_size").get<std::vector<int64_t>>();
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    throw DataError("reference", "img_size is two positive numbers", "Correct the case's meta.json");
  const field_pair_case::Source source{folder, size[0], size[1]};
  const auto pairs = folder.json("pairs.json");
  for (const auto& entry : pairs.at("cases")) {
    const std::string name = cat(entry.at("folder").get<std::string>(), " dt ", entry.at("dt").get<int64_t>());
    field_pair_case::verify_correct_pairs(source, entry, name, rows);
    field_pair_case::verify_tutorial_pairs(source, entry, name, rows);
  }
  field_pair_case::verify_limits(source, pairs, rows);
  field_pair_case::verify_normalisation(source, pairs, rows);
  field_pair_case::verify_orders(folder, rows);
  return rows;
}

}  // namespace welkin::verify
