// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_walk.h"

#include <algorithm>
#include <limits>

#include "data/formats/hdf5/hdf5_chunks.h"
#include "data/formats/hdf5/hdf5_file.h"

namespace welkin::data {
namespace {

// Chunks beyond this are left to the reader, like values: decoding one would take as long as the whole walk.
constexpr int64_t kMostChunkValues = int64_t{1} << 24;
// A larger index takes seconds to walk on a slow disk.
constexpr int64_t kMostWalkedChunks = int64_t{1} << 16;
// Most values of a data set with a filter that only the library decodes.
constexpr int64_t kMostWalkedValues = int64_t{1} << 24;

class Hdf5Walk {
 public:
  Hdf5Walk(const Hdf5File& file, const std::function<void()>& progress) : file_(file), progress_(progress) {}

  void all() {
    attributes("/");
    part([&] { file_.external_links(); });
    std::vector<std::string> names;
    part([&] { names = file_.dataset_names(); });
    for (const std::string& name : names) {
      attributes(name);
      part([&] { dataset(name); });
    }
  }

 private:
  // Errors are ignored: a reader handles them, and the library has survived.
  template <typename Body>
  void part(const Body& body) {
    progress_();
    try {
      body();
    } catch (const std::exception&) {
    }
  }

  void attributes(const std::string& object) {
    std::vector<std::string> names;
    part([&] { names = file_.attribute_names(object); });
    for (const std::string& name : names) {
      part([&] {
        file_.is_string_attribute(object, name) ? void(file_.strings(object, name)) : void(file_.numbers(object, name));
      });
    }
  }

  void dataset(const std::string& name) {
    const Hdf5Dataset facts = file_.dataset(name);
    part([&] { file_.dimension_names(name); });
    part([&] { file_.text_values(name); });
    std::optional<ChunkLayout> layout;
    part([&] { layout = file_.chunk_layout(name); });
    if (std::ranges::any_of(facts.shape, [](int64_t size) { return size <= 0; })) return;
    // The library passes all other chunks on its way to the last one.
    if (!facts.chunk.empty() && num_chunks(facts) <= kMostWalkedChunks) part([&] { file_.chunk_place(name, last_chunk(facts)); });
    if (!facts.is_number) return;
    if (!facts.filters.empty() && !layout) return slices(facts);
    const Extents one(facts.shape.size(), 1), first(facts.shape.size(), 0);
    if (num_values(facts.chunk) > kMostChunkValues) return;
    part([&] { read(name, first, one); });
    part([&] { read(name, last_cell(facts), one); });
  }

  void slices(const Hdf5Dataset& facts) {
    if (facts.shape.empty()) return;
    const int64_t thickness = std::max<int64_t>(1, facts.chunk.empty() ? 1 : facts.chunk.front());
    Extents begin(facts.shape.size(), 0), extent = facts.shape;
    int64_t walked = 0;
    for (; begin[0] < facts.shape[0] && walked < kMostWalkedValues; begin[0] += thickness) {
      extent[0] = std::min(thickness, facts.shape[0] - begin[0]);
      if (num_values(extent) > kMostChunkValues) return;
      walked += num_values(extent);
      part([&] { read(facts.name, begin, extent); });
    }
  }

  void read(const std::string& name, const Extents& begin, const Extents& extent) {
    std::vector<double> values(static_cast<size_t>(num_values(extent)));
    file_.read(name, begin, extent, std::span<double>(values));
  }

  // 1 for a scalar, or a data set without chunks.
  static int64_t num_values(const Extents& extent) {
    int64_t product = 1;
    for (const int64_t size : extent) {
      if (__builtin_mul_overflow(product, size, &product)) return std::numeric_limits<int64_t>::max();
    }
    return product;
  }

  static int64_t num_chunks(const Hdf5Dataset& facts) {
    Extents grid = facts.shape;
    for (size_t i = 0; i < grid.size(); ++i) grid[i] = 1 + (grid[i] - 1) / std::max<int64_t>(1, facts.chunk[i]);
    return num_values(grid);
  }

  static Extents last_cell(const Hdf5Dataset& facts) {
    Extents cell = facts.shape;
    for (int64_t& at : cell) --at;
    return cell;
  }

  static Extents last_chunk(const Hdf5Dataset& facts) {
    Extents cell = last_cell(facts);
    for (size_t i = 0; i < cell.size(); ++i) cell[i] -= cell[i] % std::max<int64_t>(1, facts.chunk[i]);
    return cell;
  }

  const Hdf5File& file_;
  const std::function<void()>& progress_;
};

}  // namespace

void walk_hdf5_file(const std::filesystem::path& path, const std::function<void()>& progress) {
  try {
    const Hdf5File file = Hdf5File::open(path);
    Hdf5Walk(file, progress).all();
  } catch (const std::exception&) {
  }
}

}  // namespace welkin::data
