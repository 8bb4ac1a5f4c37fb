// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/stage_cut.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace welkin::parallel {
namespace {

[[noreturn]] void refuse_split(const std::string& text, const std::string& what, int64_t segments, int64_t stages) {
  throw ConfigError("parallel", cat("the blocks of the model are not cut by this: pipeline_split=", text, ", ", what),
                    cat("Name the first and the last of blocks 0 to ", segments - 1, " for each of ", stages, " stages, as ",
                        text_of(balanced_stages(std::vector<double>(static_cast<size_t>(segments), 1), stages)),
                        ", or leave pipeline_split out"));
}

void check_enough(int64_t segments, int64_t stages) {
  if (segments >= stages) return;
  throw ConfigError("parallel",
                    cat("the pipeline has more stages than the model has blocks: stages=", stages, ", blocks=", segments),
                    cat("pipeline_parallel times pipeline_chunks may be ", segments, " at most"));
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Parses "4-7" or "4".
std::optional<StageRange> range_of(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = whole_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(text.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return StageRange{*first, *last + 1};
}

}  // namespace

std::vector<double> segment_costs(const std::vector<model::Segment>& segments, const model::ModelCost& cost) {
  std::vector<double> costs(segments.size(), 0);
  for (const model::LayerCost& layer : cost.layers) {
    const auto holder = std::ranges::find_if(segments, [&](const model::Segment& segment) { return segment.holds(layer.name); });
    if (holder != segments.end()) costs[static_cast<size_t>(holder - segments.begin())] += layer.train_flops;
  }
  const bool is_known = std::ranges::any_of(costs, [](double flops) { return flops > 0; });
  return is_known ? costs : std::vector<double>(segments.size(), 1);
}

// The cheapest way to cut the first n segments into k stages, for every n and k.
std::vector<StageRange> balanced_stages(const std::vector<double>& costs, int64_t stages) {
  check_enough(static_cast<int64_t>(costs.size()), stages);
  const size_t count = costs.size(), parts = static_cast<size_t>(stages);
  std::vector<double> sums(count + 1, 0);
  std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> worst(parts + 1, std::vector<double>(count + 1, kNone));
  std::vector<std::vector<size_t>> begins(parts + 1, std::vector<size_t>(count + 1, 0));
  worst[0][0] = 0;
  for (size_t part = 1; part <= parts; ++part) {
    for (size_t end = part; end <= count; ++end) {
      for (size_t begin = part - 1; begin < end; ++begin) {
        const double cost = std::max(worst[part - 1][begin], sums[end] - sums[begin]);
        if (cost >= worst[part][end]) continue;
        worst[part][end] = cost;
        begins[part][end] = begin;
      }
    }
  }
  std::vector<StageRange> ranges(parts);
  for (size_t part = parts, end = count; part > 0; end = begins[part][end], --part) {
    ranges[part - 1] = {static_cast<int64_t>(begins[part][end]), static_cast<int64_t>(end)};
  }
  return ranges;
}

std::vector<StageRange> stages_of_text(const std::string& text, int64_t segments, int64_t stages) {
  check_enough(segments, stages);
  std::vector<StageRange> ranges;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const auto range = range_of(part);
    if (!range) refuse_split(text, cat("no such part: ", part), segments, stages);
    const int64_t expected = ranges.empty() ? 0 : ranges.back().end;
    if (range->begin != expected) refuse_split(text, cat("block ", expected, " should begin ", part), segments, stages);
    ranges.push_back(*range);
    begin = end + 1;
  }
  if (ranges.back().end != segments) {
    refuse_split(text, cat("blocks=", segments, ", named=", ranges.back().end), segments, stages);
  }
  if (static_cast<int64_t>(ranges.size()) != stages) {
    refuse_split(text, cat("stages=", stages, ", named=", ranges.size()), segments, stages);
  }
  return ranges;
}

std::string text_of(const std::vector<StageRange>& stages) {
  std::vector<std::string> parts;
  for (const StageRange& stage : stages) {
    parts.push_back(stage.end - stage.begin == 1 ? cat(stage.begin) : cat(stage.begin, "-", stage.end - 1));
  }
  return join(parts, ",");
}

std::vector<int64_t> input_readers(const std::vector<model::Segment>& segments, const std::vector<StageRange>& stages,
                                   int64_t ranks) {
  std::set<int64_t> readers;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const bool reads = std::any_of(segments.begin() + stages[stage].begin, segments.begin() + stages[stage].end,
                                   [](const model::Segment& segment) { return segment.reads_input; });
    if (reads) readers.insert(static_cast<int64_t>(stage) % ranks);
  }
  return {readers.begin(), readers.end()};
}

}  // namespace welkin::parallel
