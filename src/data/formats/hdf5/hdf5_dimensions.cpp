// SPDX-License-Identifier: Apache-2.0
// Names that stand beside the numbers: those of dimensions (scales and labels of HDF5's dimension scales, which netCDF-4 uses
// too), and data sets of texts. The high-level library of HDF5 is not linked: attributes DIMENSION_LIST and DIMENSION_LABELS are
// read.
#include <algorithm>
#include <array>
#include <cstring>

#include "data/formats/hdf5/hdf5_handle.h"

namespace welkin::data {
namespace {

constexpr int64_t kMostTexts = 65536;
constexpr size_t kLongestText = 4096;

// The last part of the path of the object; empty where the reference is broken.
std::string name_of_reference(hid_t dataset, const hobj_ref_t& reference) {
  const Hdf5Handle object(H5Rdereference2(dataset, H5P_DEFAULT, H5R_OBJECT, &reference), H5Oclose);
  std::array<char, 1024> name{};
  if (!object || H5Iget_name(object.get(), name.data(), name.size()) <= 0) return "";
  const std::string path(name.data());
  return path.substr(path.rfind('/') + 1);
}

// The attribute has one list of references per dimension. The first scale of each list counts.
std::vector<std::string> names_of_scales(hid_t dataset, size_t rank) {
  std::vector<std::string> names(rank);
  const Hdf5Handle attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT), H5Aclose);
  if (!attribute) return names;
  const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose), type(H5Aget_type(attribute.get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_VLEN || H5Sget_simple_extent_npoints(space.get()) != static_cast<hssize_t>(rank))
    return names;
  const Hdf5Handle memory(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
  std::vector<hvl_t> lists(rank);
  if (H5Aread(attribute.get(), memory.get(), lists.data()) < 0) return names;
  for (size_t d = 0; d < rank; ++d) {
    if (lists[d].len > 0) names[d] = name_of_reference(dataset, *static_cast<const hobj_ref_t*>(lists[d].p));
  }
  H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, lists.data());
  return names;
}

std::vector<std::string> variable_texts(hid_t dataset, hid_t type, size_t count) {
  std::vector<char*> pointers(count, nullptr);
  const Hdf5Handle memory(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  H5Tset_size(memory.get(), H5T_VARIABLE);
  H5Tset_cset(memory.get(), H5Tget_cset(type));
  if (H5Dread(dataset, memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0) return {};
  std::vector<std::string> texts;
  for (const char* pointer : pointers)
    texts.emplace_back(pointer == nullptr ? "" : pointer, pointer == nullptr ? 0 : strnlen(pointer, kLongestText));
  H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, pointers.data());
  return texts;
}

// `count` texts of `length` bytes, without their padding.
std::vector<std::string> fixed_texts(hid_t dataset, hid_t type, size_t count, size_t length) {
  std::vector<char> bytes(count * length);
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) return {};
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    const char* begin = bytes.data() + i * length;
    texts.emplace_back(begin, strnlen(begin, length));
    while (texts.back().ends_with(' ')) texts.back().pop_back();
  }
  return texts;
}

}  // namespace

std::vector<std::string> Hdf5File::dimension_names(std::string_view name) const {
  const Hdf5Lock lock;
  const hid_t id = impl_->dataset(name);
  const bool has_scales = H5Aexists(id, "DIMENSION_LIST") > 0, has_labels = H5Aexists(id, "DIMENSION_LABELS") > 0;
  if (!has_scales && !has_labels) return {};
  const size_t rank = dataset(name).shape.size();
  std::vector<std::string> names(rank);
  if (has_scales) names = names_of_scales(id, rank);
  if (has_labels && is_string_attribute(name, "DIMENSION_LABELS")) {
    const std::vector<std::string> labels = strings(name, "DIMENSION_LABELS");
    for (size_t d = 0; d < std::min(rank, labels.size()); ++d) {
      if (!labels[d].empty()) names[d] = labels[d];
    }
  }
  H5Eclear2(H5E_DEFAULT);
  const bool all = std::ranges::none_of(names, &std::string::empty);
  return all ? names : std::vector<std::string>{};
}

std::vector<std::string> Hdf5File::text_values(std::string_view name) const {
  const Hdf5Lock lock;
  const Extents shape = dataset(name).shape;
  const hid_t id = impl_->dataset(name);
  const Hdf5Handle type(H5Dget_type(id), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING || shape.empty() || shape[0] < 1 || shape[0] > kMostTexts) return {};
  const auto count = static_cast<size_t>(shape[0]);
  const bool variable = H5Tis_variable_str(type.get()) > 0;
  std::vector<std::string> texts;
  if (shape.size() == 1 && variable) texts = variable_texts(id, type.get(), count);
  const size_t size = H5Tget_size(type.get());
  if (shape.size() == 1 && !variable && size <= kLongestText) texts = fixed_texts(id, type.get(), count, size);
  const bool characters =
      shape.size() == 2 && !variable && size == 1 && shape[1] > 0 && shape[1] <= static_cast<int64_t>(kLongestText);
  if (characters) texts = fixed_texts(id, type.get(), count, static_cast<size_t>(shape[1]));
  H5Eclear2(H5E_DEFAULT);
  return texts;
}

}  // namespace welkin::data
