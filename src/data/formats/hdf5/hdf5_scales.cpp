// SPDX-License-Identifier: Apache-2.0
// Writes dimension scales by HDF5's dimension scale specification, as netCDF-4 does: a data set with CLASS and NAME stands for a
// dimension, DIMENSION_LIST of an array refers to one for each axis, REFERENCE_LIST of a scale refers back. The high-level
// library of HDF5 is not linked.
#include <array>

#include "core/text.h"
#include "data/formats/hdf5/hdf5_handle.h"

namespace welkin::data {
namespace {

// An attribute of a data set must fit into a header of 64 KiB. Readers find scales by DIMENSION_LIST alone.
constexpr size_t kMostReferences = 4000;

struct ScaleUse {
  hobj_ref_t array;
  int axis;
};

void write_raw_attribute(const Hdf5File& file, hid_t object, std::string_view object_name, const char* name, hid_t type,
                         hid_t space, const void* value) {
  const Hdf5Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.get(), type, value) < 0)
    throw hdf5_error(cat("write the attribute ", name), file, object_name);
}

// The specification wants texts of fixed length that end with a zero.
void write_fixed_text(const Hdf5File& file, hid_t object, std::string_view object_name, const char* name,
                      const std::string& text) {
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  H5Tset_size(type.get(), text.size() + 1);
  write_raw_attribute(file, object, object_name, name, type.get(), space.get(), text.c_str());
}

void write_uses(const Hdf5File& file, hid_t scale, std::string_view name, const std::vector<ScaleUse>& uses) {
  if (uses.empty() || uses.size() > kMostReferences) return;
  const hsize_t count = uses.size();
  const Hdf5Handle type(H5Tcreate(H5T_COMPOUND, sizeof(ScaleUse)), H5Tclose);
  H5Tinsert(type.get(), "dataset", HOFFSET(ScaleUse, array), H5T_STD_REF_OBJ);
  H5Tinsert(type.get(), "dimension", HOFFSET(ScaleUse, axis), H5T_NATIVE_INT);
  const Hdf5Handle stored(H5Tcopy(type.get()), H5Tclose), space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  H5Tpack(stored.get());  // without bytes of no meaning
  const Hdf5Handle attribute(H5Acreate2(scale, "REFERENCE_LIST", stored.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute || H5Awrite(attribute.get(), type.get(), uses.data()) < 0)
    throw hdf5_error("write the attribute REFERENCE_LIST", file, name);
}

}  // namespace

void Hdf5File::set_dimension_scales(const DimensionScales& scales) {
  const Hdf5Lock lock;
  const auto reference_to = [&](const std::string& name) {
    hobj_ref_t reference{};
    if (H5Rcreate(&reference, impl_->file.get(), name.c_str(), H5R_OBJECT, -1) < 0)
      throw hdf5_error("refer to the data set", *this, name);
    return reference;
  };
  std::map<std::string, std::vector<ScaleUse>> uses;
  for (const auto& [array, axes] : scales.of_arrays) {
    std::vector<hobj_ref_t> references;
    std::vector<hvl_t> lists;
    references.reserve(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) {
      uses[axes[d]].push_back({reference_to(array), static_cast<int>(d)});
      references.push_back(reference_to(axes[d]));
      lists.push_back({1, &references.back()});
    }
    const hsize_t rank = axes.size();
    const Hdf5Handle type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose), space(H5Screate_simple(1, &rank, nullptr), H5Sclose);
    write_raw_attribute(*this, impl_->dataset(array), array, "DIMENSION_LIST", type.get(), space.get(), lists.data());
  }
  for (const auto& [scale, title] : scales.titles) {
    const hid_t id = impl_->dataset(scale);
    write_fixed_text(*this, id, scale, "CLASS", "DIMENSION_SCALE");
    write_fixed_text(*this, id, scale, "NAME", title);
    write_uses(*this, id, scale, uses[scale]);
  }
}

}  // namespace welkin::data
