// SPDX-License-Identifier: Apache-2.0
#include "data/formats/hdf5/hdf5_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>

#include "core/text.h"
#include "data/check/file_checks.h"
#include "data/formats/check_arrays.h"
#include "data/formats/hdf5/hdf5_filters.h"
#include "data/formats/hdf5/hdf5_handle.h"

namespace welkin::data {
namespace {

std::recursive_mutex& hdf5_mutex() {
  // HDF5's state is one per process, so is its mutex. HDF5's cleanup at exit would touch the remains of a file that could not
  // be closed (full disk) and end the process by SIGSEGV. Every Hdf5File closes itself, so nothing is lost without it.
  static std::recursive_mutex mutex;
  static const bool prepared = [] {
    H5dont_atexit();
    register_hdf5_filters();
    return true;
  }();
  static_cast<void>(prepared);
  return mutex;
}

// The library ends the process on some damaged files, so a child opens them first. Off until check_hdf5_in_children.
FileChecks& hdf5_checks() {
  static FileChecks checks;
  return checks;
}

void refuse_deadly(const std::filesystem::path& path) {
  const std::string death = hdf5_checks().death(path);
  if (death.empty()) return;
  throw DataError("hdf5", cat("a damaged file: path=", path.string(), ", reason=a process that read it ", death),
                  "Copy or make it again, or look at the disk that it is on");
}

// The innermost message says why; the ones above it only repeat which call failed.
herr_t take_innermost(unsigned n, const H5E_error2_t* entry, void* text) {
  if (n == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

// Failed calls of the system come with the time, a line break, the descriptor and addresses; only its message is of use.
std::string without_internals(const std::string& reason) {
  constexpr std::string_view kSaid = "error message = '";
  const size_t begin = reason.find(kSaid);
  if (begin == std::string::npos) return reason;
  const size_t end = reason.find('\'', begin + kSaid.size());
  return cat(reason.substr(0, reason.find(": ")), ": ", reason.substr(begin + kSaid.size(), end - begin - kSaid.size()));
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason.empty() ? "unknown" : without_internals(reason).substr(0, 400);
}

Hdf5Handle hdf5_access_list() {
  Hdf5Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fclose_degree(list.get(), H5F_CLOSE_STRONG);
  H5Pset_file_locking(list.get(), false, true);  // our writers rename finished files; locks fail on some parallel file systems
  return list;
}

struct Hdf5Names {
  std::vector<std::string> names;
  static constexpr size_t kMost = 100'000;
};

constexpr ptrdiff_t kDeepestGroup = 16;

herr_t add_dataset_name(hid_t, const char* name, const H5O_info_t* info, void* out) {
  const std::string_view path(name);
  if (info->type != H5O_TYPE_DATASET || std::ranges::count(path, '/') > kDeepestGroup) return 0;
  auto& names = static_cast<Hdf5Names*>(out)->names;
  if (names.size() >= Hdf5Names::kMost) return 1;
  names.emplace_back(path);
  return 0;
}

struct Hdf5Links {
  std::vector<std::string> soft;
  std::map<std::string, std::string> external;  // to "file.h5:/object"
};

std::string external_target(hid_t group, const char* name, const H5L_info_t& info) {
  std::vector<char> value(info.u.val_size);
  const char *file = nullptr, *object = nullptr;
  unsigned flags = 0;
  const bool is_known = H5Lget_val(group, name, value.data(), value.size(), H5P_DEFAULT) >= 0 &&
                        H5Lunpack_elink_val(value.data(), value.size(), &flags, &file, &object) >= 0;
  return is_known ? cat(file, ":", object) : "unknown";
}

herr_t add_link(hid_t group, const char* name, const H5L_info_t* info, void* out) {
  const std::string_view path(name);
  if (std::ranges::count(path, '/') > kDeepestGroup) return 0;
  auto& links = *static_cast<Hdf5Links*>(out);
  if (links.soft.size() + links.external.size() >= Hdf5Names::kMost) return 1;
  if (info->type == H5L_TYPE_SOFT) links.soft.emplace_back(path);
  if (info->type == H5L_TYPE_EXTERNAL) links.external.emplace(path, external_target(group, name, *info));
  return 0;
}

Hdf5Links links_of(hid_t file, const std::filesystem::path& path) {
  Hdf5Links links;
  if (H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, add_link, &links) < 0) throw hdf5_error("list the links", path, "");
  return links;
}

herr_t refuse_other_file(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) { return -1; }

// Access list for opening by name. Soft links are followed. Links into other files are not: a file must not choose which others
// are read, and the places of bytes that readers use (Hdf5Dataset::offset) would be those of another file.
Hdf5Handle within_this_file() {
  Hdf5Handle list(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_elink_cb(list.get(), refuse_other_file, nullptr);
  return list;
}

}  // namespace

void check_hdf5_in_children(CheckHelper helper) { hdf5_checks().use(std::move(helper)); }

void check_hdf5_files(std::span<const std::filesystem::path> paths) { hdf5_checks().check(paths); }

Hdf5Lock::Hdf5Lock() : lock_(hdf5_mutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

DataError hdf5_error(std::string_view action, const std::filesystem::path& path, std::string_view object) {
  const std::string name = object.empty() ? "" : cat(", dataset=", object);
  return {"hdf5", cat("cannot ", action, ": path=", path.string(), name, ", reason=", hdf5_reason()),
          "Check that the file is whole (welkin data inspect) and the disk is not full"};
}

DataError hdf5_error(std::string_view action, const Hdf5File& file, std::string_view object) {
  return hdf5_error(action, file.path(), object);
}

hid_t hdf5_memory_type(Hdf5Type type) {
  switch (type) {
    case Hdf5Type::Float32:
      return H5T_NATIVE_FLOAT;
    case Hdf5Type::Float64:
      return H5T_NATIVE_DOUBLE;
    case Hdf5Type::Int32:
      return H5T_NATIVE_INT32;
    case Hdf5Type::Int64:
      return H5T_NATIVE_INT64;
  }
  return H5I_INVALID_HID;
}

Hdf5File::Hdf5File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5File::Hdf5File(Hdf5File&&) noexcept = default;
Hdf5File& Hdf5File::operator=(Hdf5File&&) noexcept = default;

Hdf5File::~Hdf5File() {
  if (!impl_) return;
  const Hdf5Lock lock;
  impl_.reset();
}

Hdf5File Hdf5File::open(const std::filesystem::path& path) {
  if (::access(path.c_str(), R_OK) != 0) {
    throw DataError("hdf5", cat("cannot open: path=", path.string(), ", reason=", std::system_category().message(errno)),
                    "Check the path and its permissions");
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    throw DataError("hdf5",
                    cat("cannot open: path=", path.string(), ", reason=this is ", is_folder ? "a folder" : "no regular file"),
                    "Put an HDF5 file there, or move it out of the way");
  }
  refuse_deadly(path);
  const Hdf5Lock lock;
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  const Hdf5Handle list = hdf5_access_list();  // closing it would clear the error stack
  impl->file = Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, list.get()), H5Fclose);
  if (!impl->file) throw hdf5_error("open as HDF5", path, "");
  return Hdf5File(std::move(impl));
}

Hdf5File Hdf5File::create(const std::filesystem::path& path) {
  const Hdf5Lock lock;
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->writable = true;
  const Hdf5Handle list = hdf5_access_list();
  impl->file = Hdf5Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, list.get()), H5Fclose);
  if (!impl->file) throw hdf5_error("create", path, "");
  return Hdf5File(std::move(impl));
}

const std::filesystem::path& Hdf5File::path() const { return impl_->path; }

void Hdf5File::close() {
  const Hdf5Lock lock;
  if (impl_->writable && H5Fflush(impl_->file.get(), H5F_SCOPE_LOCAL) < 0) throw hdf5_error("finish writing", impl_->path, "");
  impl_->datasets.clear();
  if (impl_->file.close() < 0) throw hdf5_error("finish writing", impl_->path, "");
  if (impl_->writable) hdf5_checks().trust(impl_->path);
}

std::vector<std::string> Hdf5File::dataset_names() const {
  const Hdf5Lock lock;
  Hdf5Names found;
  if (H5Ovisit2(impl_->file.get(), H5_INDEX_NAME, H5_ITER_INC, add_dataset_name, &found, H5O_INFO_BASIC) < 0) {
    throw hdf5_error("list the data sets", impl_->path, "");
  }
  for (const std::string& name : links_of(impl_->file.get(), impl_->path).soft) {
    if (has_dataset(name)) found.names.push_back(name);
  }
  std::ranges::sort(found.names);
  return std::move(found.names);
}

std::map<std::string, std::string> Hdf5File::external_links() const {
  const Hdf5Lock lock;
  return links_of(impl_->file.get(), impl_->path).external;
}

bool Hdf5File::has_dataset(std::string_view name) const {
  const Hdf5Lock lock;
  const Hdf5Handle list = within_this_file();
  const bool found = static_cast<bool>(Hdf5Handle(H5Dopen2(impl_->file.get(), std::string(name).c_str(), list.get()), H5Dclose));
  H5Eclear2(H5E_DEFAULT);
  return found;
}

hid_t Hdf5File::Impl::dataset(std::string_view name) const {
  const auto known = datasets.find(name);
  if (known != datasets.end()) return known->second.get();
  const Hdf5Handle list = within_this_file();
  Hdf5Handle handle(H5Dopen2(file.get(), std::string(name).c_str(), list.get()), H5Dclose);
  if (!handle) throw hdf5_error("open the data set", path, name);
  return datasets.emplace(std::string(name), std::move(handle)).first->second.get();
}

Hdf5Handle Hdf5File::Impl::object(std::string_view name) const {
  const Hdf5Handle list = within_this_file();
  Hdf5Handle handle(H5Oopen(file.get(), std::string(name).c_str(), list.get()), H5Oclose);
  if (!handle) throw hdf5_error("open the object", path, name);
  return handle;
}

}  // namespace welkin::data
