// SPDX-License-Identifier: Apache-2.0
#include "data/formats/sample_arrays.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/formats/file_values.h"
#include "data/formats/npy_file.h"
#include "data/formats/sidecar.h"

namespace welkin::data {
namespace {

// A sample's npy file by its header, and the offset of its first value in the archive.
struct Sample {
  NpyHeader header;
  uint64_t offset = 0;
};

struct SampleGroup {
  std::vector<uint64_t> offsets;
  NpyHeader header;  // of the first sample
  std::string first;
};

class SampleArray : public StoredArray {
 public:
  SampleArray(ArrayFacts facts, std::shared_ptr<const WatchedFile> file, std::vector<uint64_t> offsets)
      : StoredArray(std::move(facts)), file_(std::move(file)), offsets_(std::move(offsets)) {
    const Extents& shape = this->facts().shape;
    byte_stride_ = file_strides({shape.begin() + 1, shape.end()}, this->facts().dtype, this->facts().fortran_order);
  }

  // Samples of equal size often lie at equal distances.
  std::optional<MappedFloats> mapped() const override {
    if (facts().dtype != Dtype::F32 || facts().big_endian || facts().packing) return std::nullopt;
    const uint64_t step = offsets_.size() > 1 ? offsets_[1] - offsets_[0] : 0;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (offsets_[i] != offsets_[0] + i * step || offsets_[i] % sizeof(float) != 0) return std::nullopt;
    }
    MappedFloats floats{.file = file_, .offset = offsets_[0], .stride = byte_stride_};
    floats.stride.insert(floats.stride.begin(), static_cast<int64_t>(step));
    for (int64_t& bytes : floats.stride) bytes /= static_cast<int64_t>(sizeof(float));
    return floats;
  }

 protected:
  void read_stored(const ArrayRegion& region, const ValueTarget& target) const override {
    const ArrayRegion inner{{region.begin.begin() + 1, region.begin.end()}, {region.end.begin() + 1, region.end.end()}};
    const int64_t width = target.is_double ? 8 : 4;
    ValueTarget piece{target.to, target.is_double, target.stride + 1};
    for (int64_t i = region.begin[0]; i < region.end[0]; ++i) {
      piece.to = static_cast<std::byte*>(target.to) + (i - region.begin[0]) * target.stride[0] * width;
      read_file_values(*file_, offsets_[static_cast<size_t>(i)], {facts().dtype, facts().big_endian}, inner, byte_stride_, piece);
    }
  }

 private:
  std::shared_ptr<const WatchedFile> file_;
  std::vector<uint64_t> offsets_;
  Extents byte_stride_;  // of one sample
};

// The array that a member belongs to: what stands between the first point of its last path component and ".npy".
std::string array_name_of(std::string_view member) {
  member.remove_suffix(std::string_view(".npy").size());
  const size_t slash = member.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? member : member.substr(slash + 1);
  const size_t point = base.find('.');
  return point == std::string_view::npos ? "" : std::string(base.substr(point + 1));
}

std::string member_source(const std::filesystem::path& path, const SampleEntry& entry) {
  return cat(path.string(), ", member=", entry.name, ", offset=", entry.offset);
}

Sample read_sample(const WatchedFile& bytes, const SampleEntry& entry, const std::string& source) {
  // Most headers have 128 bytes: the long ones are read again.
  for (const uint64_t length : {uint64_t{256}, uint64_t{kNpyHeadBytes}}) {
    std::vector<std::byte> head(static_cast<size_t>(std::min(entry.size, length)));
    bytes.read(entry.offset, head);
    const bool is_long = head.size() >= 12 && std::to_integer<unsigned>(head[9]) > 0 && length < kNpyHeadBytes;
    if (is_long) continue;
    const NpyHeader header = parse_npy_header(head, entry.size, source);
    return {header, entry.offset + header.data_offset};
  }
  throw InternalError("an npy header that was read twice");
}

void add_sample(const WatchedFile& bytes, const std::filesystem::path& path, const SampleEntry& entry, SampleGroup& group) {
  const std::string source = member_source(path, entry);
  const Sample sample = read_sample(bytes, entry, source);
  if (group.offsets.empty()) {
    group.header = sample.header;
    group.first = entry.name;
  }
  const NpyHeader& first = group.header;
  const bool same = first.dtype == sample.header.dtype && first.big_endian == sample.header.big_endian &&
                    first.shape == sample.header.shape &&
                    (first.fortran_order == sample.header.fortran_order || first.shape.size() < 2);
  if (!same) {
    throw DataError("data",
                    cat("samples that differ: path=", source, ", shape=", extents_text(sample.header.shape),
                        ", dtype=", dtype_name(sample.header.dtype), ", first=", group.first,
                        ", first_shape=", extents_text(first.shape), ", first_dtype=", dtype_name(first.dtype)),
                    "Give all samples of an array one shape and type");
  }
  group.offsets.push_back(sample.offset);
}

StoredArrayPtr make_sample_array(const std::string& name, SampleGroup group, const std::shared_ptr<const WatchedFile>& bytes,
                                 const ArrayFile& file) {
  ArrayFacts facts{.source = cat(file.path.string(), ", dataset=", name),
                   .name = name,
                   .shape = group.header.shape,
                   .chunk = {},
                   .codecs = {},
                   .axes = file.texts(name, "axes"),
                   .packing = {}};
  facts.shape.insert(facts.shape.begin(), static_cast<int64_t>(group.offsets.size()));
  facts.dtype = group.header.dtype;
  facts.big_endian = group.header.big_endian;
  facts.fortran_order = group.header.fortran_order;
  facts.stored_bytes = group.offsets.size() * static_cast<uint64_t>(group.header.num_values()) * dtype_bytes(facts.dtype);
  const auto attributes = file.attributes.find(name);
  if (attributes != file.attributes.end()) add_packing(attributes->second, facts);
  return std::make_shared<SampleArray>(std::move(facts), bytes, std::move(group.offsets));
}

void read_side_member(const SampleEntry& entry, const WatchedFile& bytes, ArrayFile& file) {
  const std::string source = member_source(file.path, entry);
  if (entry.size > kMaxSidecarBytes) {
    throw DataError("data", cat("a description that is too large: path=", source, ", bytes=", entry.size), "Check the file");
  }
  std::string text(static_cast<size_t>(entry.size), '\0');
  bytes.read(entry.offset, std::as_writable_bytes(std::span(text)));
  const Sidecar document = parse_sidecar(text, source);
  add_sidecar(document, source, file);
  for (const auto& [name, array] : document.arrays) {
    if (!array.axes.empty()) file.attributes[name]["axes"] = array.axes;
  }
}

}  // namespace

void add_sample_arrays(const std::vector<SampleEntry>& entries, const std::shared_ptr<const WatchedFile>& bytes,
                       ArrayFile& file) {
  std::map<std::string, SampleGroup> groups;
  for (const SampleEntry& entry : entries) {
    if (entry.name == kSidecarName) {
      read_side_member(entry, *bytes, file);
    } else if (entry.name.ends_with(".npy")) {
      add_sample(*bytes, file.path, entry, groups[array_name_of(entry.name)]);
    } else if (file.not_numbers.size() < 100) {
      file.not_numbers[entry.name] = "no npy file";
    }
  }
  for (auto& [name, group] : groups) file.arrays[name] = make_sample_array(name, std::move(group), bytes, file);
}

}  // namespace welkin::data
