// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/era5_dataset.h"

#include <algorithm>
#include <ranges>

#include "core/error.h"
#include "core/process/host.h"
#include "core/process/thread_pool.h"
#include "core/text.h"
#include "data/datasets/channel_statistics.h"
#include "data/datasets/crop_range.h"
#include "data/datasets/doubled_times.h"
#include "data/sample/calendar.h"
#include "data/storage/fingerprint.h"
#include "data/storage/host_memory.h"

namespace welkin::data {
namespace {

std::vector<double> part_of(const std::vector<double>& values, int64_t begin, int64_t extent) {
  if (values.empty()) return {};
  return {values.begin() + begin, values.begin() + begin + extent};
}

void check_steps(const FieldFacts& facts, const Era5Options& options) {
  const int64_t needed = options.lead + options.history;
  if (facts.steps >= needed) return;
  throw DataError("data",
                  cat("a year with too few steps: path=", facts.path.string(), ", steps=", facts.steps, ", needed=", needed,
                      ", dt=", options.lead, ", history=", options.history),
                  "Remove that file or reduce dt or history");
}

void check_same_kind(const FieldFacts& first, const FieldFacts& other) {
  const std::string difference = difference_between(first, other);
  if (difference.empty()) return;
  throw DataError("data",
                  cat("files of one folder differ: path=", other.path.string(), ", first=", first.path.string(),
                      ", difference in ", difference),
                  "Put files of one kind into one folder; welkin data ingest makes them alike");
}

// The window of the file for a part of the crop.
FieldWindow window_of(const FieldWindow& crop, const Region& region) {
  return {crop.row + region.begin[0], crop.column + region.begin[1], region.extent[0], region.extent[1]};
}

bool begins_with(const std::vector<int64_t>& longer, const std::vector<int64_t>& start) {
  return start.size() <= longer.size() && std::equal(start.begin(), start.end(), longer.begin());
}

}  // namespace

GridFacts read_grid_facts(const Era5Options& options) {
  const auto file = open_first_field_file(options.source());
  const FieldFacts& facts = file->facts();
  const FieldWindow window = select_fields(facts, options).window;
  return {.latitude = part_of(facts.latitude, window.row, window.height),
          .longitude = longitudes_of(facts, window),
          .calendar = facts.calendar};
}

Era5Dataset::Era5Dataset(Era5Options options, std::shared_ptr<const ExtraChannels> extra) : options_(std::move(options)) {
  open_files();
  if (statics_) extras_.push_back(statics_);
  if (extra) extras_.push_back(std::move(extra));
  check_files();
  if (options_.hold) hold_files();
  std::vector<int64_t> steps;
  first_step_ = {0};
  for (const auto& file : files_) {
    steps.push_back(file->facts().steps);
    first_step_.push_back(first_step_.back() + steps.back());
  }
  pairs_.emplace(steps, PairOptions{.lead = options_.lead, .history = options_.history, .rules = options_.rules});
  make_spec();
  check_statics_stay();
}

void Era5Dataset::open_files() {
  FieldFiles opened = open_field_files(options_.source());
  files_ = std::move(opened.files), paths_ = std::move(opened.paths);
  if (options_.like) {
    for (const auto& file : files_) file->arrange_like(*options_.like);
  }
  const FieldFacts& first = files_.front()->facts();
  selection_ = select_fields(first, options_);
  if (options_.like) check_inputs_are_here();
  if (!first.static_names.empty()) {
    statics_ = std::make_shared<const StaticChannels>(files_.front()->statics(), selection_.window.row, selection_.window.column);
  }
  input_runs_ = channel_runs(selection_.input), target_runs_ = channel_runs(selection_.target);
  options_.height = selection_.window.height, options_.width = selection_.window.width;
  options_.in_channels = static_cast<int64_t>(selection_.input.size());
  options_.out_channels = static_cast<int64_t>(selection_.target.size());
}

void Era5Dataset::hold_files() {
  uint64_t values = 0;
  for (const auto& file : files_) {
    const FieldFacts& facts = file->facts();
    values += static_cast<uint64_t>(facts.steps * facts.channels * facts.height * facts.width);
  }
  check_fits_memory(values * sizeof(float), options_.folder.string());
  ThreadPool pool({.num_threads = usable_cores(), .name = "hold"});
  pool.parallel_for(num_files(), [this](int64_t i) { files_[static_cast<size_t>(i)]->hold(); });
}

void Era5Dataset::check_files() {
  const FieldFacts& first = files_.front()->facts();
  const bool needs_time = std::ranges::any_of(extras_, [](const auto& extra) { return extra->needs_time(); });
  for (const auto& file : files_) {
    check_same_kind(first, file->facts());
    check_steps(file->facts(), options_);
    if (needs_time) need_times(file->facts(), "forcing", "the key forcing");
  }
  if (options_.rules == Rules::Tutorial && options_.history != 1) {
    throw ConfigError("data", cat("the tutorials' pairs have one input step: history=", options_.history),
                      "Set history to 1 or drop compat or pair_rule");
  }
}

int64_t Era5Dataset::size() const { return std::min(pairs_->count(), options_.limit.value_or(pairs_->count())); }

SamplePlan Era5Dataset::plan(SampleKey key, const Region& wanted) const {
  const FieldPair pair = pairs_->at(key.index);
  if (!pairs_->exists(pair)) {
    const FieldFacts& facts = file(pair.file);
    throw DataError("data",
                    cat("the tutorials' rule reads beyond the end of a year: path=", facts.path.string(), ", steps=", facts.steps,
                        ", input_step=", pair.step, ", target_step=", pair.step + options_.lead),
                    "Drop compat or pair_rule, or give years of equal length");
  }
  SamplePlan plan;
  plan.index = key.index;
  plan.file = static_cast<int32_t>(pair.file);
  plan.time = pair.step;
  plan.region = wanted;
  return plan;
}

void Era5Dataset::read(const SamplePlan& plan, SampleView out) const {
  const FieldFile& file = *files_[static_cast<size_t>(plan.file)];
  const FieldWindow window = window_of(selection_.window, plan.region);
  const auto plane = static_cast<size_t>(window.height * window.width);
  const size_t step_values = static_cast<size_t>(options_.in_channels) * plane;
  if (!out.input.empty()) {
    WELKIN_CHECK(out.input.size() == spec_.input.channels.size() * plane, "a view of the wrong size");
    for (int64_t step = 0; step < options_.history; ++step) {
      const auto to = out.input.subspan(static_cast<size_t>(step) * step_values, step_values);
      const ChannelOp* ops = out.transformed && !input_ops_.empty() ? input_ops_.data() + step * options_.in_channels : nullptr;
      read_step(file, plan.time - options_.history + 1 + step, input_runs_, window, to, ops);
    }
    fill_extra(plan, out.input.subspan(static_cast<size_t>(options_.history) * step_values), out.transformed);
  }
  if (out.target.empty()) return;
  const ChannelOp* ops = out.transformed && !target_ops_.empty() ? target_ops_.data() : nullptr;
  read_step(file, plan.time + options_.lead, target_runs_, window, out.target, ops);
}

void Era5Dataset::read_target(const SamplePlan& plan, int64_t channel, std::span<float> out) const {
  const ChannelRun run{selection_.target[static_cast<size_t>(channel)], 1};
  read_step(*files_[static_cast<size_t>(plan.file)], plan.time + options_.lead, {run}, selection_.window, out, nullptr);
}

void Era5Dataset::read_input(const SamplePlan& plan, int64_t channel, std::span<float> out) const {
  const ChannelRun run{selection_.input[static_cast<size_t>(channel)], 1};
  read_step(*files_[static_cast<size_t>(plan.file)], plan.time, {run}, selection_.window, out, nullptr);
}

// Scratch memory of this thread for a part of a window that goes around. It keeps its size from sample to sample.
std::span<float> around_scratch(size_t count) {
  thread_local std::vector<float> scratch;
  if (scratch.size() < count) scratch.resize(count);
  return std::span(scratch).first(count);
}

// Reads the columns up to the last one of the file, then those from the first one on.
void Era5Dataset::read_around(const FieldFile& file, int64_t step, const std::vector<ChannelRun>& runs, const FieldWindow& window,
                              std::span<float> out, const ChannelOp* ops) const {
  const int64_t around = file.facts().width, begin = window.column % around;
  int64_t channels = 0;
  for (const ChannelRun& run : runs) channels += run.count;
  const int64_t before = std::min(window.width, around - begin);
  for (const int64_t at : {int64_t{0}, before}) {
    const FieldWindow part{window.row, at == 0 ? begin : 0, window.height, at == 0 ? before : window.width - before};
    if (part.width == 0) continue;
    const int64_t rows = channels * part.height;
    const std::span<float> values = around_scratch(static_cast<size_t>(rows * part.width));
    read_step(file, step, runs, part, values, ops);
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(values.data() + row * part.width, part.width, out.data() + row * window.width + at);
    }
  }
}

void Era5Dataset::read_step(const FieldFile& file, int64_t step, const std::vector<ChannelRun>& runs, const FieldWindow& window,
                            std::span<float> out, const ChannelOp* ops) const {
  if (window.column + window.width > file.facts().width) return read_around(file, step, runs, window, out, ops);
  const auto plane = static_cast<size_t>(window.height * window.width);
  for (const ChannelRun& run : runs) {
    const size_t values = static_cast<size_t>(run.count) * plane;
    file.read(step, run, window, out.first(values), ops);
    out = out.subspan(values);
    if (ops != nullptr) ops += run.count;
  }
}

bool Era5Dataset::shares_channels() const {
  return begins_with(selection_.input, selection_.target) || begins_with(selection_.target, selection_.input);
}

const std::vector<int64_t>& Era5Dataset::held_channels(int64_t array) const {
  if (!shares_channels()) return array == 0 ? selection_.input : selection_.target;
  return selection_.input.size() >= selection_.target.size() ? selection_.input : selection_.target;
}

std::vector<ResidentArray> Era5Dataset::arrays() const {
  const FieldFacts& facts = file(0);
  std::vector<ResidentArray> arrays;
  for (int64_t a = 0; a < (shares_channels() ? 1 : 2); ++a) {
    arrays.push_back({.channels = static_cast<int64_t>(held_channels(a).size()),
                      .extent = {first_step_.back(), facts.height, facts.width},
                      .mean = held_mean(a)});
  }
  return arrays;
}

std::vector<double> Era5Dataset::held_mean(int64_t array) const {
  if (&held_channels(array) == &selection_.target) return spec_.target_mean;
  return part_of(spec_.input_mean, spec_.newest_input_channel, options_.in_channels);
}

Era5Dataset::FilePlace Era5Dataset::place_of(int64_t step) const {
  const auto after = std::ranges::upper_bound(first_step_, step);
  const auto number = static_cast<size_t>(after - first_step_.begin()) - 1;
  return {number, step - first_step_[number]};
}

void Era5Dataset::read_plane(int64_t array, int64_t channel, int64_t index, std::span<float> out) const {
  const FilePlace place = place_of(index);
  const FieldFacts& facts = files_[place.file]->facts();
  const int64_t of_file = held_channels(array)[static_cast<size_t>(channel)];
  files_[place.file]->read_channel(place.step, of_file, {0, 0, facts.height, facts.width}, out);
}

std::string Era5Dataset::plane_location(int64_t array, int64_t channel, int64_t index) const {
  const FilePlace place = place_of(index);
  const FieldFacts& facts = files_[place.file]->facts();
  const int64_t of_file = held_channels(array)[static_cast<size_t>(channel)];
  return cat("path=", facts.path.string(), ", dataset=fields, step=", place.step, ", channel=", of_file, " (",
             file_channel_names(facts, options_)[static_cast<size_t>(of_file)], ")");
}

ResidentSample Era5Dataset::crops(const SamplePlan& plan) const {
  const int64_t step = first_step_[static_cast<size_t>(plan.file)] + plan.time;
  const FieldWindow window = window_of(selection_.window, plan.region);
  const FieldFacts& facts = file(plan.file);
  ResidentCrop cut{.array = shares_channels() ? 0 : 1,
                   .first = {step + options_.lead, window.row, window.column % facts.width},
                   .extent = {1, window.height, window.width},
                   .num_channels = options_.out_channels};
  ResidentSample sample{.input = {}, .target = {cut}};
  cut.array = 0;
  cut.num_channels = options_.in_channels;
  for (int64_t age = options_.history - 1; age >= 0; --age) {
    cut.first[0] = step - age;
    sample.input.push_back(cut);
    cut.first_channel += options_.in_channels;
  }
  return sample;
}

std::optional<int64_t> Era5Dataset::following(int64_t index) const {
  const int64_t next = index + options_.lead;
  if (next >= size()) return {};
  const FieldPair from = pairs_->at(index), to = pairs_->at(next);
  const bool follows = to == FieldPair{.file = from.file, .step = from.step + options_.lead} && pairs_->exists(to);
  return follows ? std::optional(next) : std::nullopt;
}

// The steps of a year are those of the first file, as in the tutorials, unless the years differ.
std::vector<std::string> Era5Dataset::describe() const {
  std::vector<int64_t> steps;
  for (const auto& file : files_) steps.push_back(file->facts().steps);
  const auto [shortest, longest] = std::ranges::minmax(steps);
  std::vector<std::string> lines = {cat("Getting file stats from ", files_.front()->facts().path.string())};
  if (options_.limit) lines.push_back(cat("Overriding total number of samples to: ", size()));
  lines.push_back(cat("Number of samples per year: ", shortest, longest > shortest ? cat(" to ", longest) : ""));
  lines.push_back(cat("Found data at path ", options_.folder.string(), ". Number of examples: ", size(),
                      ". Image Shape: ", options_.height, " x ", options_.width, " x ", options_.in_channels));
  if (const std::string chosen = chosen_text(file(0), selection_, options_); !chosen.empty()) lines.push_back(chosen);
  if (statics_) lines.push_back(cat("Static input channels: ", join(statics_->names(), " ")));
  if (spec_.has_holes) {
    lines.emplace_back("Points without a value (NaN) have no weight in loss and scores; the input has the channel's mean there");
  }
  return lines;
}

std::vector<std::string> Era5Dataset::warnings() const {
  std::vector<std::string> lines;
  if (std::string text = left_out_text(file(0), selection_, options_); !text.empty()) lines.push_back(std::move(text));
  const bool is_declared =
      std::ranges::any_of(files_, [](const auto& file) { return file->facts().missing == Missing::Declared; });
  if (is_declared && !spec_.has_holes) lines.push_back(missing_line());
  std::vector<const FieldFacts*> all;
  for (const auto& file : files_) all.push_back(&file->facts());
  if (std::string text = doubled_times_text(all); !text.empty()) lines.push_back(std::move(text));
  const FieldFacts& facts = files_.front()->facts();
  if (!facts.place_note.empty() && !facts.fields_alone) lines.push_back(facts.place_note);
  return lines;
}

std::vector<std::string> Era5Dataset::notes() const {
  const FieldFacts& facts = files_.front()->facts();
  if (facts.place_note.empty() || !facts.fields_alone) return {};
  return {facts.place_note};
}

std::string Era5Dataset::location(const SamplePlan& plan) const {
  const FieldFacts& facts = file(plan.file);
  const std::string time =
      facts.time.empty()
          ? std::string()
          : cat(", time=", format_date(parse_calendar(facts.calendar), facts.time[static_cast<size_t>(plan.time)]));
  return cat("path=", facts.path.string(), ", dataset=fields, step=", plan.time, time,
             ", target_step=", plan.time + options_.lead, ", index=", plan.index);
}

uint64_t Era5Dataset::bytes_requested() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file->bytes_requested();
  return bytes;
}

std::vector<FileFingerprint> Era5Dataset::fingerprints() const {
  std::vector<FileFingerprint> prints;
  for (const auto& path : paths_) prints.push_back(fingerprint_of(path));
  return prints;
}

void Era5Dataset::fill_extra(const SamplePlan& plan, std::span<float> out, bool transformed) const {
  if (extras_.empty()) return;
  const FieldFacts& facts = file(plan.file);
  const int64_t seconds = facts.time.empty() ? 0 : facts.time[static_cast<size_t>(plan.time + options_.lead)];
  const auto plane = plan.region.extent[0] * plan.region.extent[1];
  std::span<float> rest = out;
  for (const auto& extra : extras_) {
    const auto values = static_cast<size_t>(extra->count() * plane);
    extra->fill(seconds, plan.region, rest.first(values));
    rest = rest.subspan(values);
  }
  if (!transformed || input_ops_.empty()) return;
  const auto first = static_cast<size_t>(first_extra());
  for (size_t c = first; c < input_ops_.size(); ++c) {
    apply(input_ops_[c], out.data() + static_cast<int64_t>(c - first) * plane, plane);
  }
}

}  // namespace welkin::data
