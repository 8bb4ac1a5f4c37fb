// SPDX-License-Identifier: Apache-2.0
// Attributes: texts of fixed or variable length, numbers, one or many.
#include <algorithm>
#include <cstring>

#include "core/text.h"
#include "data/formats/hdf5/hdf5_handle.h"

namespace welkin::data {
namespace {

constexpr hssize_t kMostAttributeValues = 1 << 20;
constexpr size_t kLongestString = 1 << 20;

herr_t add_attribute_name(hid_t, const char* name, const H5A_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

struct OpenAttribute {
  Hdf5Handle object, attribute, type, space;
  size_t num_values = 0;
};

OpenAttribute open_attribute(const Hdf5File& file, Hdf5Handle object, std::string_view object_name, std::string_view name) {
  OpenAttribute open;
  open.object = std::move(object);
  open.attribute = Hdf5Handle(H5Aopen(open.object.get(), std::string(name).c_str(), H5P_DEFAULT), H5Aclose);
  if (!open.attribute) throw hdf5_error(cat("open the attribute ", name), file, object_name);
  open.type = Hdf5Handle(H5Aget_type(open.attribute.get()), H5Tclose);
  open.space = Hdf5Handle(H5Aget_space(open.attribute.get()), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(open.space.get());
  if (count < 0 || count > kMostAttributeValues) {
    throw DataError("hdf5",
                    cat("an attribute of unusable size: path=", file.path().string(), ", object=", object_name,
                        ", attribute=", name, ", values=", count),
                    "Check the file");
  }
  open.num_values = static_cast<size_t>(count);
  return open;
}

std::vector<std::string> read_variable_strings(const OpenAttribute& open) {
  std::vector<char*> pointers(open.num_values, nullptr);
  const Hdf5Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(memory.get(), H5T_VARIABLE);
  H5Tset_cset(memory.get(), H5Tget_cset(open.type.get()));
  if (H5Aread(open.attribute.get(), memory.get(), pointers.data()) < 0) return {};
  std::vector<std::string> values;
  for (const char* pointer : pointers) values.emplace_back(pointer == nullptr ? "" : pointer);
  H5Dvlen_reclaim(memory.get(), open.space.get(), H5P_DEFAULT, pointers.data());
  return values;
}

std::vector<std::string> read_fixed_strings(const OpenAttribute& open) {
  const size_t length = H5Tget_size(open.type.get());
  if (length == 0 || length > kLongestString || length * open.num_values > kLongestString * 16) return {};
  std::vector<char> bytes(length * open.num_values);
  if (H5Aread(open.attribute.get(), open.type.get(), bytes.data()) < 0) return {};
  std::vector<std::string> values;
  for (size_t i = 0; i < open.num_values; ++i) {
    const char* begin = bytes.data() + i * length;
    std::string value(begin, strnlen(begin, length));
    while (H5Tget_strpad(open.type.get()) == H5T_STR_SPACEPAD && value.ends_with(' ')) value.pop_back();
    values.push_back(std::move(value));
  }
  return values;
}

// An attribute of that name is replaced.
Hdf5Handle make_attribute(const Hdf5File& file, hid_t object, std::string_view object_name, std::string_view name, hid_t type,
                          hid_t space) {
  const std::string text(name);
  if (H5Aexists(object, text.c_str()) > 0) H5Adelete(object, text.c_str());
  Hdf5Handle attribute(H5Acreate2(object, text.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute) throw hdf5_error(cat("create the attribute ", name), file, object_name);
  return attribute;
}

Hdf5Handle utf8_type() {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

// An attribute without a value, as netCDF-4 writes an empty text.
void write_empty_attribute(const Hdf5File& file, hid_t object, std::string_view object_name, std::string_view name, hid_t type) {
  const Hdf5Handle space(H5Screate(H5S_NULL), H5Sclose);
  make_attribute(file, object, object_name, name, type, space.get());
}

void write_attribute(const Hdf5File& file, hid_t object, std::string_view object_name, std::string_view name, hid_t type,
                     hid_t space, const void* values) {
  const Hdf5Handle attribute = make_attribute(file, object, object_name, name, type, space);
  if (H5Awrite(attribute.get(), type, values) < 0) throw hdf5_error(cat("write the attribute ", name), file, object_name);
}

}  // namespace

std::vector<std::string> Hdf5File::attribute_names(std::string_view object) const {
  const Hdf5Lock lock;
  const Hdf5Handle handle = impl_->object(object);
  std::vector<std::string> names;
  if (H5Aiterate2(handle.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute_name, &names) < 0) {
    throw hdf5_error("list the attributes", *this, object);
  }
  return names;
}

bool Hdf5File::has_attribute(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  return H5Aexists(impl_->object(object).get(), std::string(name).c_str()) > 0;
}

bool Hdf5File::is_string_attribute(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  return H5Tget_class(open_attribute(*this, impl_->object(object), object, name).type.get()) == H5T_STRING;
}

std::vector<std::string> Hdf5File::strings(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  const OpenAttribute open = open_attribute(*this, impl_->object(object), object, name);
  const bool is_string = H5Tget_class(open.type.get()) == H5T_STRING;
  std::vector<std::string> values;
  if (is_string) values = H5Tis_variable_str(open.type.get()) > 0 ? read_variable_strings(open) : read_fixed_strings(open);
  if (values.size() == open.num_values) return values;
  throw hdf5_error(cat("read the attribute ", name, " as text"), *this, object);
}

std::vector<double> Hdf5File::numbers(std::string_view object, std::string_view name) const {
  const Hdf5Lock lock;
  const OpenAttribute open = open_attribute(*this, impl_->object(object), object, name);
  const H5T_class_t kind = H5Tget_class(open.type.get());
  std::vector<double> values(open.num_values);
  const bool is_number = kind == H5T_FLOAT || kind == H5T_INTEGER;
  if (is_number && (values.empty() || H5Aread(open.attribute.get(), H5T_NATIVE_DOUBLE, values.data()) >= 0)) return values;
  throw hdf5_error(cat("read the attribute ", name, " as numbers"), *this, object);
}

void Hdf5File::set_strings(std::string_view object, std::string_view name, const std::vector<std::string>& values) {
  const Hdf5Lock lock;
  if (values.empty()) return write_empty_attribute(*this, impl_->object(object).get(), object, name, utf8_type().get());
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(value.c_str());
  const hsize_t size = pointers.size();
  const Hdf5Handle space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  write_attribute(*this, impl_->object(object).get(), object, name, utf8_type().get(), space.get(), pointers.data());
}

void Hdf5File::set_string(std::string_view object, std::string_view name, std::string_view value) {
  const Hdf5Lock lock;
  const std::string text(value);
  const char* pointer = text.c_str();
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(*this, impl_->object(object).get(), object, name, utf8_type().get(), space.get(), &pointer);
}

void Hdf5File::set_number(std::string_view object, std::string_view name, double value) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(*this, impl_->object(object).get(), object, name, H5T_NATIVE_DOUBLE, space.get(), &value);
}

void Hdf5File::set_numbers(std::string_view object, std::string_view name, const std::vector<double>& values) {
  const Hdf5Lock lock;
  if (values.empty()) return write_empty_attribute(*this, impl_->object(object).get(), object, name, H5T_NATIVE_DOUBLE);
  const hsize_t count = values.size();
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  write_attribute(*this, impl_->object(object).get(), object, name, H5T_NATIVE_DOUBLE, space.get(), values.data());
}

void Hdf5File::set_integer(std::string_view object, std::string_view name, int64_t value) {
  const Hdf5Lock lock;
  const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  write_attribute(*this, impl_->object(object).get(), object, name, H5T_NATIVE_INT64, space.get(), &value);
}

}  // namespace welkin::data
