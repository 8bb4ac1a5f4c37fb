// SPDX-License-Identifier: Apache-2.0
#include "data/forecast/forecast_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/file_descriptor.h"
#include "core/text.h"

namespace welkin::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRequest = "request.txt";
constexpr const char* kNetcdfData = "data.nc";
constexpr uint64_t kMostJournalBytes = uint64_t{64} << 20;

fs::path unfinished(const fs::path& output) { return fs::path(output).concat(".unfinished"); }

// "a/x.zarr/" is "a/x.zarr".
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

bool is_zarr(const fs::path& output) { return output.extension() == ".zarr"; }

Codec zarr_codec() { return {.kind = CodecKind::Blosc, .level = 5, .width = sizeof(float), .compressor = "zstd", .shuffle = 1}; }

// What an unfinished file has on its disk already counts as free.
void check_room(const fs::path& output, const ForecastLayout& layout) {
  double needed = 0;  // more than 64 bits where somebody mistypes a number
  for (const OutputArray& array : forecast_output(layout).arrays) {
    double values = 1;
    for (const int64_t extent : array.shape) values *= static_cast<double>(extent);
    needed += values * static_cast<double>(dtype_bytes(array.dtype));
  }
  std::error_code failed;
  const fs::path folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  const fs::space_info disk = fs::space(folder, failed);
  if (failed) return;  // what writes there says what is wrong with it
  struct stat begun {};
  const fs::path data = unfinished(output) / kNetcdfData;
  constexpr double kBlock = 512;  // of st_blocks
  const double written = ::stat(data.c_str(), &begun) == 0 ? kBlock * static_cast<double>(begun.st_blocks) : 0;
  if (needed <= static_cast<double>(disk.available) + written) return;
  constexpr double kGib = 1 << 30;
  throw DataError("forecast",
                  cat("the forecast does not fit on its disk: output=", output.string(), ", needed=", needed / kGib,
                      " GiB, free=", static_cast<double>(disk.available) / kGib, " GiB, starts=", layout.starts.size(),
                      ", leads=", layout.num_leads(), ", members=", layout.members, ", channels=", layout.channels.size()),
                  "Ask for fewer of them, name an output elsewhere, or .zarr, which is compressed");
}

// A line that was cut off by the end of its process does not count.
std::string whole_lines(const std::string& text) {
  const size_t last = text.rfind('\n');
  return last == std::string::npos ? std::string() : text.substr(0, last + 1);
}

void append_line(const fs::path& path, const std::string& line) {
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
  write_fully(file, path, line);
}

}  // namespace

void ForecastStore::check(const fs::path& given, const ForecastLayout& layout, const std::string& request) {
  const fs::path output = without_slash(given);
  if (!is_zarr(output) && output.extension() != ".nc") {
    throw ConfigError("forecast", cat("not a known kind of file: output=", output.string()), "Name it .zarr or .nc");
  }
  if (fs::exists(fs::symlink_status(output))) {
    throw ConfigError("forecast", cat("the output is there already: output=", output.string()), "Remove it, or name another");
  }
  if (!is_zarr(output)) check_room(output, layout);
  const fs::path begun = unfinished(output) / kRequest;
  if (!fs::exists(begun)) return;
  const std::string other = read_file(begun, kMostJournalBytes);
  if (other == request) return;
  std::istringstream ours(request), theirs(other);
  std::string one, two;
  while (std::getline(ours, one) && std::getline(theirs, two) && one == two) continue;
  throw ConfigError(
      "forecast",
      cat("another forecast was begun there: folder=", unfinished(output).string(), ", begun=\"", two, "\", asked=\"", one, "\""),
      "Repeat that command, remove the folder, or name another output");
}

ForecastStore::ForecastStore(fs::path output, const ForecastLayout& layout, const std::string& request, int64_t rank)
    : output_(without_slash(output)),
      folder_(unfinished(output_)),
      data_(folder_ / (is_zarr(output_) ? "data.zarr" : kNetcdfData)),
      journal_(folder_ / cat("done.", rank)),
      layout_(layout) {
  make_folders(folder_);
  OutputFile file = forecast_output(layout);
  if (is_zarr(output_)) {
    for (OutputArray& array : file.arrays) array.codecs = {zarr_codec()};
  }
  writer_ = is_zarr(output_) ? make_zarr_writer(data_, 2, file) : make_netcdf_writer(data_, file);
  const std::vector<double> valid = valid_time_values(layout);
  writer_->write(layout.channels.size(), whole_region(file.arrays.back().shape), std::as_bytes(std::span(valid)));
  if (rank == 0 && !fs::exists(folder_ / kRequest)) write_file_atomically(folder_ / kRequest, request);
  read_journals();
}

void ForecastStore::read_journals() {
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("done.")) continue;
    std::istringstream lines(whole_lines(read_file(entry.path(), kMostJournalBytes)));
    for (int64_t unit = 0; lines >> unit;) done_.insert(unit);
  }
  // New lines must not continue a line that was cut off.
  if (fs::exists(journal_)) write_file_atomically(journal_, whole_lines(read_file(journal_, kMostJournalBytes)));
}

void ForecastStore::write(int64_t channel, int64_t start, int64_t member, int64_t lead, std::span<const float> field) {
  writer_->write(static_cast<size_t>(channel), field_region(layout_, start, member, lead), std::as_bytes(field));
}

void ForecastStore::finish_unit(int64_t unit) { append_line(journal_, cat(unit, "\n")); }

void ForecastStore::publish() {
  writer_->finish();
  if (is_zarr(output_)) {
    publish_folder(data_, output_);
  } else {
    fs::rename(data_, output_);
    sync_path(output_.has_parent_path() ? output_.parent_path() : ".");
  }
  fs::remove_all(folder_);
}

}  // namespace welkin::data
