// SPDX-License-Identifier: Apache-2.0
#include "data/tools/inspect_bench.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "core/philox.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/datasets/box_array.h"
#include "data/datasets/field_file.h"
#include "data/formats/array_file.h"

namespace welkin::data {
namespace {

// One array as training reads it. `read` reads the sample of that number, drawn from it, into `out`.
struct BenchTarget {
  std::string name;
  std::vector<int64_t> shape, chunk, read_shape;
  std::string how;
  std::function<void(uint64_t number, std::span<float> out)> read;
  std::function<uint64_t()> bytes_requested;
};

int64_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies{});
}

int64_t drawn(uint64_t number, uint64_t lane, int64_t bound) {
  const PhiloxBlock words = philox(stream_key(1, "inspect --bench"), lane, number);
  return static_cast<int64_t>(bounded(words[0], words[1], static_cast<uint64_t>(bound)));
}

// Bytes per second of delivered values.
double read_rate(const BenchTarget& target, int num_threads, double seconds) {
  const auto values = static_cast<size_t>(count_of(target.read_shape));
  std::atomic<uint64_t> next = 0, done = 0;
  std::exception_ptr error;
  std::mutex mutex;
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < num_threads; ++t) {
      threads.emplace_back([&] {
        std::vector<float> out(values);
        try {
          do {
            target.read(next++, out);
            ++done;
          } while (watch.seconds() < seconds);
        } catch (...) {
          const std::lock_guard lock(mutex);
          error = std::current_exception();
        }
      });
    }
  }
  if (error) std::rethrow_exception(error);
  return static_cast<double>(done * values * sizeof(float)) / watch.seconds();
}

std::string chunks_text(const ArrayFacts& facts) {
  if (facts.chunk.empty()) return "in one piece";
  return cat("chunks of (", join(facts.chunk, ", "), ")", facts.codecs.empty() ? "" : ", ", join(facts.codecs, ", "));
}

BenchTarget box_target(const std::string& name, const BoxArrayPtr& box, const FileBenchOptions& options) {
  const BoxShape& shape = box->shape();
  BenchTarget target{.name = name,
                     .shape = {shape.channels},
                     .chunk = {},
                     .read_shape = {shape.channels},
                     .how = {},
                     .read = {},
                     .bytes_requested = {}};
  std::array<int64_t, 3> crop{};
  for (size_t a = 0; a < 3; ++a) {
    crop[a] = std::min(options.crop, shape.extent[a]);
    target.shape.push_back(shape.extent[a]);
    target.read_shape.push_back(crop[a]);
  }
  target.read = [box, crop](uint64_t number, std::span<float> out) {
    std::vector<int64_t> channels(static_cast<size_t>(box->shape().channels));
    std::iota(channels.begin(), channels.end(), 0);
    BoxPiece piece;
    for (size_t a = 0; a < 3; ++a) piece.first[a] = drawn(number, a, box->shape().extent[a] - crop[a] + 1);
    piece.extent = crop;
    piece.channels = channels.data();
    piece.num_channels = box->shape().channels;
    piece.to = out.data();
    piece.to_stride = {crop[0] * crop[1] * crop[2], crop[1] * crop[2], crop[2], 1};
    box->read(piece);
  };
  target.bytes_requested = [box] { return box->bytes_requested(); };
  return target;
}

BenchTarget field_target(const std::filesystem::path& path) {
  // There is no cache of decoded chunks: a step is read once or twice in an epoch.
  const auto file = std::make_shared<FieldFile>(path, std::make_shared<ChunkCache>(0));
  const FieldFacts& facts = file->facts();
  BenchTarget target{.name = "fields",
                     .shape = {facts.steps, facts.channels, facts.height, facts.width},
                     .chunk = {},
                     .read_shape = {1, facts.channels, facts.height, facts.width},
                     .how = {},
                     .read = {},
                     .bytes_requested = [file] { return file->bytes_requested(); }};
  target.read = [file](uint64_t number, std::span<float> out) {
    const FieldFacts& f = file->facts();
    file->read(drawn(number, 0, f.steps), {0, f.channels}, {0, 0, f.height, f.width}, out);
  };
  return target;
}

// Boxes are (channel, x, y, z), or as npy files are by custom (x, y, z, channel).
std::vector<BenchTarget> targets_of(const std::filesystem::path& path, const FileBenchOptions& options) {
  std::vector<BenchTarget> targets;
  const ArrayFile file = open_array_file(path);
  for (const auto& [name, array] : file.arrays) {
    const ArrayFacts& facts = array->facts();
    if (facts.shape.size() != 4 || std::ranges::count(facts.shape, 0) > 0) continue;
    const bool is_last = facts.shape[3] < facts.shape[0];
    if (name == "fields") {
      targets.push_back(field_target(path));
    } else {
      targets.push_back(box_target(name.empty() ? "array" : name,
                                   open_box(file, name, is_last ? ChannelAxis::Last : ChannelAxis::First), options));
    }
    const Extents& chunk = facts.chunk;
    targets.back().chunk = is_last && !chunk.empty() ? Extents{chunk[3], chunk[0], chunk[1], chunk[2]} : chunk;
    targets.back().how = chunks_text(facts);
  }
  return targets;
}

std::string advice(double amplification, double asked) {
  if (amplification > 1.5) {
    return "  the chunks do not fit the reads: rewrite them with the shape of a read, or a divisor of it\n";
  }
  if (asked > 1.5) return "  more bytes are asked of the file than are wanted\n";
  return "";
}

std::string bench_target(const BenchTarget& target, const FileBenchOptions& options) {
  const int threads = options.num_threads > 0 ? options.num_threads : usable_cores();
  const double one = read_rate(target, 1, options.seconds);  // also warms the page cache for the second
  const uint64_t before = target.bytes_requested();
  const auto values = static_cast<size_t>(count_of(target.read_shape));
  std::vector<float> out(values);
  target.read(uint64_t{1} << 40, out);
  const double asked = static_cast<double>(target.bytes_requested() - before) / static_cast<double>(values * sizeof(float));
  const double many = read_rate(target, threads, options.seconds);
  const double amplification = read_amplification(target.shape, target.chunk, target.read_shape);
  return cat(target.name, " (", join(target.shape, ", "), "), ", target.how, "\n  reads of (", join(target.read_shape, ", "),
             "): 1 thread ", one * 1e-9, " GB/s, ", threads, " threads ", many * 1e-9, " GB/s (", many / one,
             " times)\n  values decoded per value wanted ", amplification, ", bytes asked of the file per byte delivered ",
             asked == 0 ? "not counted" : cat(asked), "\n", advice(amplification, asked));
}

}  // namespace

double read_amplification(const std::vector<int64_t>& shape, const std::vector<int64_t>& chunk,
                          const std::vector<int64_t>& read) {
  if (chunk.empty()) return 1;
  double factor = 1;
  for (size_t a = 0; a < shape.size(); ++a) {
    const auto c = static_cast<double>(chunk[a]), r = static_cast<double>(read[a]);
    const double most = static_cast<double>((shape[a] + chunk[a] - 1) / chunk[a]);
    const double touched = read[a] == shape[a] ? most : std::min(most, (r - 1) / c + 1);
    factor *= touched * c / r;
  }
  return factor;
}

std::string bench_file(const std::filesystem::path& path, const FileBenchOptions& options) {
  const std::vector<BenchTarget> targets = targets_of(path, options);
  if (targets.empty()) {
    throw DataError("data", cat("nothing that training reads: path=", path.string()),
                    "Give a file with fields (time, channel, lat, lon) or boxes (channel, x, y, z)");
  }
  std::string text = cat(path.string(), "\n");
  for (const BenchTarget& target : targets) text += bench_target(target, options);
  return text;
}

}  // namespace welkin::data
