// SPDX-License-Identifier: Apache-2.0
#include "data/ingest/defaults.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/ingest/channels.h"
#include "data/ingest/feed_reader.h"
#include "data/ingest/sequences.h"
#include "data/ingest/source/inventory.h"

namespace welkin::data::ingest {
namespace {

constexpr size_t kMostLevelsUnasked = 8;
constexpr int64_t kLargestPatch = 32;
constexpr double kWantedTokens = 256;
constexpr size_t kYearsThatSplit = 3;  // fewer: by a share of the times
constexpr double kValidShare = 0.2;
constexpr size_t kFewestTimes = 10;  // of a share: two pairs at least are held back

std::vector<InputFile> inputs_of(const std::vector<std::filesystem::path>& inputs, bool recursive) {
  return find_inputs(inputs, recursive ? Subfolders::Read : Subfolders::Skip).files;
}

class DefaultChoice {
 public:
  DefaultChoice(const Component& component, Options options)
      : inventory_(take_inventory(component, inputs_of(options.inputs, options.recursive))) {
    chosen_.options = std::move(options);
  }

  FieldDefaults choose() {
    const ChannelPlan plan = plan_channels(inventory_, chosen_.options);
    look_at_levels(plan);
    const Sequences sequences = sort_sequences(inventory_, plan, chosen_.options);
    split(sequences, plan.calendar);
    patch(inventory_.grids[static_cast<size_t>(plan.grid)]);
    return std::move(chosen_);
  }

 private:
  void look_at_levels(const ChannelPlan& plan) {
    if (!chosen_.options.variables.empty() || !chosen_.options.levels.empty()) return;
    std::map<int32_t, std::set<double>> levels;
    for (const Feed& feed : plan.feeds) levels[feed.variable].insert(feed.level);
    for (const auto& [index, values] : levels) {
      const std::string& name = inventory_.variables[static_cast<size_t>(index)].name;
      const std::string text = join(std::vector<double>(values.begin(), values.end()), ",");
      if (values.size() > kMostLevelsUnasked) {
        throw DataError("init", cat("which levels are wanted: variable=", name, ", levels=", text),
                        "Choose with --levels, or single ones with --variables");
      }
      if (values.size() > 1) assume(cat("levels of ", name, ": all of ", text, " (--levels chooses)"));
    }
  }

  void split(const Sequences& sequences, Calendar calendar) {
    Split& split = chosen_.options.split;
    if (!split.valid_from.empty() || split.valid_last > 0 || split.valid_fraction > 0) return;
    std::set<int64_t> times;
    std::set<int64_t> years;
    for (const Sequence& sequence : sequences.members) times.insert(sequence.times.begin(), sequence.times.end());
    for (const int64_t time : times) years.insert(to_date(calendar, time).year);
    if (times.size() < kFewestTimes) {
      throw DataError("init",
                      cat("too few times for a training and a validation part: times=", times.size(), ", needed=", kFewestTimes),
                      "Give more files");
    }
    if (years.size() >= kYearsThatSplit) {
      const size_t held = std::max<size_t>(1, static_cast<size_t>(kValidShare * static_cast<double>(years.size())));
      const int64_t first = *std::next(years.begin(), static_cast<std::ptrdiff_t>(years.size() - held));
      split.valid_from = format_date(calendar, to_seconds(calendar, {.year = first}));
      assume(cat("validation: the years from ", first, " on, ", held, " of ", years.size(), " (--valid_from chooses)"));
      return;
    }
    split.valid_fraction = kValidShare;
    assume(cat("validation: the last ", kValidShare, " of the times (--valid_fraction, --valid_last or --valid_from choose)"));
  }

  void patch(const Grid& grid) {
    Options& options = chosen_.options;
    if (options.patch > 0) return;
    const Crop whole = resolve_crop(grid, options.crop, 0);
    options.patch = choose_patch(whole.height, whole.width);
    const int64_t rows = whole.height / options.patch, columns = whole.width / options.patch;
    assume(cat("patch: ", options.patch, ", of ", whole.height, "x", whole.width, " points ", rows * options.patch, "x",
               columns * options.patch, " are taken, ", rows * columns, " tokens (--patch and --crop choose)"));
  }

  void assume(std::string line) { chosen_.assumed.push_back(std::move(line)); }

  Inventory inventory_;
  FieldDefaults chosen_;
};

void add_hdf5_fields(const std::filesystem::path& path, std::vector<std::string>& names) {
  const Hdf5File file = Hdf5File::open(path);
  for (const std::string& name : file.dataset_names()) {
    const Hdf5Dataset dataset = file.dataset(name);
    if (dataset.is_number && dataset.shape.size() >= 3) names.push_back(name.substr(name.rfind('/') + 1));
  }
}

}  // namespace

int64_t choose_patch(int64_t height, int64_t width) {
  int64_t best = 1;
  double least = 1e300;
  for (int64_t patch = 1; patch <= std::min({kLargestPatch, height, width}); ++patch) {
    const auto rows = static_cast<double>(height / patch), columns = static_cast<double>(width / patch);
    const auto edge = static_cast<double>(patch);
    const double lost = 1 - rows * edge * columns * edge / (static_cast<double>(height) * static_cast<double>(width));
    const double price = 20 * lost + std::abs(std::log2(rows * columns / kWantedTokens));
    if (price >= least) continue;
    least = price;
    best = patch;
  }
  return best;
}

FieldDefaults choose_defaults(const Component& component, Options options) {
  return DefaultChoice(component, std::move(options)).choose();
}

std::vector<std::string> box_fields(const std::vector<std::filesystem::path>& inputs, bool recursive,
                                    const Component& component) {
  std::vector<std::string> names;
  std::vector<InputFile> others;
  for (const InputFile& file : inputs_of(inputs, recursive)) {
    if (file.format == Format::Hdf5) {
      add_hdf5_fields(file.path, names);
    } else {
      others.push_back(file);
    }
  }
  if (!others.empty()) {
    for (const Variable& variable : take_inventory(component, std::move(others)).variables) names.push_back(variable.name);
  }
  return names;
}

}  // namespace welkin::data::ingest
