// SPDX-License-Identifier: Apache-2.0
#include "data/simulate/globe/weather.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/sample/calendar.h"
#include "data/simulate/globe/atmosphere.h"
#include "data/simulate/globe/weather_statistics.h"

namespace welkin::data::simulate {
namespace {

struct YearFile {
  std::string split;
  int64_t year = 0;
  std::optional<int64_t> training;  // place among the training years
};

std::vector<YearFile> files_of(const WeatherOptions& o) {
  std::vector<YearFile> files;
  for (int64_t i = 0; i < o.years + o.years_valid + o.years_test; ++i) {
    const std::string split = i < o.years ? "train" : i < o.years + o.years_valid ? "valid" : "test";
    files.push_back({split, o.first_year + i, i < o.years ? std::optional(i) : std::nullopt});
  }
  return files;
}

int64_t truncation_of(const WeatherOptions& o) { return o.truncation > 0 ? o.truncation : o.height < 96 ? 21 : 42; }

Provenance provenance_of(const WeatherOptions& o) {
  Provenance p;
  p.add("simulation", std::string("weather"));
  // Compared with the manifests of folders that exist already, so it keeps its wording. The page: docs/reference/simulate.md.
  p.add("method", std::string("two-layer shallow water on the sphere, spectral (docs/simulate.md); not reanalysis"));
  p.add("seed", static_cast<int64_t>(o.seed));
  p.add("years", o.years);
  p.add("years_valid", o.years_valid);
  p.add("years_test", o.years_test);
  p.add("first_year", o.first_year);
  p.add("steps", o.steps);
  p.add("height", o.height);
  p.add("width", o.width);
  p.add("truncation", truncation_of(o));
  p.add("spin_up_days", o.spin_up_days);
  return p;
}

// The state that all years share.
struct Stage {
  const WeatherOptions& options;
  const Provenance& provenance;
  const SphereTransform& grid;
  const Planet& planet;
  WeatherStatistics& statistics;
  const SimulationProgress& progress;
  std::mutex& progress_mutex;
};

std::vector<double> latitudes(int64_t height) {
  std::vector<double> degrees;
  for (int64_t j = 0; j < height; ++j) degrees.push_back(90.0 - 180.0 * static_cast<double>(j) / static_cast<double>(height - 1));
  return degrees;
}

std::vector<double> longitudes(int64_t width) {
  std::vector<double> degrees;
  for (int64_t i = 0; i < width; ++i) degrees.push_back(360.0 * static_cast<double>(i) / static_cast<double>(width));
  return degrees;
}

Hdf5File create_year(const std::filesystem::path& path, const Stage& stage, int64_t year) {
  const WeatherOptions& o = stage.options;
  Hdf5File file = Hdf5File::create(path);
  file.create_dataset("fields",
                      {.type = Hdf5Type::Float32, .shape = {o.steps, kWeatherChannels, o.height, o.width}, .chunk = {}});
  file.set_strings("fields", "channels", weather_channel_names());
  file.set_strings("fields", "units", weather_channel_units());
  file.create_dataset("latitude", {.type = Hdf5Type::Float64, .shape = {o.height}, .chunk = {}});
  file.write("latitude", {0}, {o.height}, std::span<const double>(latitudes(o.height)));
  file.create_dataset("longitude", {.type = Hdf5Type::Float64, .shape = {o.width}, .chunk = {}});
  file.write("longitude", {0}, {o.width}, std::span<const double>(longitudes(o.width)));
  std::vector<int64_t> times;
  const int64_t start = to_seconds(Calendar::ProlepticGregorian, {.year = year});
  for (int64_t t = 0; t < o.steps; ++t) times.push_back(start + 21600 * t);
  file.create_dataset("time", {.type = Hdf5Type::Int64, .shape = {o.steps}, .chunk = {}});
  file.write("time", {0}, {o.steps}, std::span<const int64_t>(times));
  file.set_string("time", "calendar", "proleptic_gregorian");
  file.set_string("time", "units", "seconds since 1970-01-01T00:00:00Z");
  write_provenance(file, stage.provenance);
  return file;
}

// Every year is a run of its own from its own disturbance: years can be made side by side, and no year knows another.
void simulate_year(const Stage& stage, const YearFile& target) {
  const WeatherOptions& o = stage.options;
  const uint64_t key = stream_key(o.seed, cat("simulate/weather/", target.year));
  Atmosphere air(stage.grid.modes().truncation, stage.planet, key, -86400.0 * static_cast<double>(o.spin_up_days));
  for (int64_t i = 0; i < 4 * o.spin_up_days; ++i) air.advance_six_hours();
  WeatherStatistics::Year sums;
  if (target.training) sums = stage.statistics.begin_year();
  write_path_atomically(o.out / target.split / cat(target.year, ".h5"), [&](const std::filesystem::path& path) {
    Hdf5File file = create_year(path, stage, target.year);
    std::vector<float> fields(static_cast<size_t>(kWeatherChannels * o.height * o.width));
    for (int64_t t = 0; t < o.steps; ++t) {
      air.channels(stage.grid, fields);
      file.write("fields", {t, 0, 0, 0}, {1, kWeatherChannels, o.height, o.width}, std::span<const float>(fields));
      if (target.training) stage.statistics.add(sums, fields);
      if (t + 1 < o.steps) air.advance_six_hours();
      const std::lock_guard lock(stage.progress_mutex);
      stage.progress(cat(target.split, " ", target.year), t + 1, o.steps);
    }
    file.close();
  });
  if (target.training) stage.statistics.finish_year(*target.training, std::move(sums));
}

// Bytes of one year under work: a field, its sums, and the model (some dozens of mode arrays).
int64_t bytes_per_year(const WeatherOptions& o) {
  const int64_t values = kWeatherChannels * o.height * o.width, modes = (truncation_of(o) + 1) * (truncation_of(o) + 2) / 2;
  return values * (4 + 8) + modes * 16 * 100 + o.width * 2 * 30 * 8;
}

int64_t shared_bytes(const WeatherOptions& o) {
  const int64_t modes = (truncation_of(o) + 1) * (truncation_of(o) + 2) / 2;
  return kWeatherChannels * o.height * o.width * (8 + 4) + (o.height + 1) / 2 * modes * 3 * 8;
}

int64_t years_together(const WeatherOptions& o, int threads) {
  const double left = o.max_memory_gib * 0x1.0p30 - static_cast<double>(shared_bytes(o));
  const auto fit = static_cast<int64_t>(left / static_cast<double>(bytes_per_year(o)));
  if (fit < 1) {
    throw ConfigError(
        "simulate weather",
        cat("the memory limit is too small: needed_gib=", static_cast<double>(shared_bytes(o) + bytes_per_year(o)) / 0x1.0p30,
            ", max_memory_gib=", o.max_memory_gib),
        "Raise --max_memory_gib or lower --grid");
  }
  return std::min<int64_t>(fit, threads);
}

}  // namespace

void set_scale(WeatherOptions& o, double scale) {
  const auto part = [&](int64_t full, int64_t least) {
    return std::max(least, static_cast<int64_t>(std::llround(scale * static_cast<double>(full))));
  };
  o.years = part(26, 1);
  o.years_valid = part(2, 1);
  o.years_test = 1;
  o.steps = part(1460, 8);
  // Sides that patches of eight divide.
  o.height = 8 * part(45, 3);
  o.width = 2 * o.height;
}

void validate(const WeatherOptions& o) {
  std::vector<std::string> problems;
  const auto need = [&](bool good, const std::string& text) {
    if (!good) problems.push_back(text);
  };
  const auto within = [](int64_t v, int64_t low, int64_t high) { return v >= low && v <= high; };
  need(!o.out.empty(), "out is empty");
  need(within(o.years, 1, 1000) && within(o.years_valid, 0, 1000) && within(o.years_test, 0, 1000),
       cat("years=", o.years, ", years_valid=", o.years_valid, ", years_test=", o.years_test,
           " (at least 1, 0, 0; at most 1000)"));
  need(within(o.first_year, 1000, 7000), cat("first_year=", o.first_year, " (1000 to 7000: files are named by four digits)"));
  need(within(o.steps, 2, 1460), cat("steps=", o.steps, " (2 to 1460, 6 h each)"));
  need(within(o.height, 8, 4000) && within(o.width, 16, 8000), cat("grid=", o.height, "x", o.width, " (8x16 to 4000x8000)"));
  need(within(truncation_of(o), 5, 170), cat("truncation=", o.truncation, " (5 to 170)"));
  need(o.width > 2 * truncation_of(o),
       cat("width=", o.width, ", truncation=", truncation_of(o), " (width must exceed twice the truncation)"));
  need(within(o.spin_up_days, 0, 360), cat("spin_up_days=", o.spin_up_days, " (0 to 360)"));
  need(o.max_memory_gib > 0.0, cat("max_memory_gib=", o.max_memory_gib, " (above 0)"));
  if (!problems.empty())
    throw ConfigError("simulate weather", join(problems, "; "), "Change these flags: welkin data simulate weather --help");
}

bool simulate_weather(const WeatherOptions& options, ThreadPool& pool, const SimulationProgress& progress) {
  validate(options);
  const Provenance provenance = provenance_of(options);
  if (already_simulated(options.out, provenance, options.overwrite)) return false;
  const int64_t together = years_together(options, pool.num_threads() + 1);
  const std::vector<YearFile> files = files_of(options);
  for (const YearFile& file : files) make_folders(options.out / file.split);
  make_folders(options.out / "stats");

  const int64_t truncation = truncation_of(options);
  const SphereTransform grid(equiangular_latitudes(options.height), options.width, truncation);
  const Planet planet = make_planet(ShallowWater(atmosphere_options(truncation)).transform(), options.seed);
  WeatherStatistics statistics(kWeatherChannels, options.height * options.width, options.years);
  std::mutex progress_mutex;
  const Stage stage{options, provenance, grid, planet, statistics, progress, progress_mutex};
  std::mutex next_mutex;
  size_t next = 0;
  pool.parallel_for(together, [&](int64_t) {
    for (;;) {
      size_t mine = 0;
      {
        const std::lock_guard lock(next_mutex);
        if (next == files.size()) return;
        mine = next++;
      }
      simulate_year(stage, files[mine]);
    }
  });
  statistics.write(options.out / "stats", options.height, options.width);
  write_manifest(options.out, provenance);
  return true;
}

}  // namespace welkin::data::simulate
