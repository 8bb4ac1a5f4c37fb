// SPDX-License-Identifier: Apache-2.0
#include "train/nodes/folder_stream.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "parallel/comm/collectives.h"
#include "train/checkpoint/aside_folder.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/format/checkpoint_index.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestListing = int64_t{64} << 20;
constexpr int64_t kPatience = -1;  // in the place of a listing's length
constexpr const char* kIndexFile = "index.json";

std::vector<NamedFile> files_in(const fs::path& folder, const std::vector<std::string>& names) {
  std::vector<NamedFile> files;
  for (const std::string& name : names) files.push_back({name, static_cast<int64_t>(fs::file_size(folder / name))});
  if (!names.empty()) return files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files.push_back({entry.path().filename().string(), static_cast<int64_t>(entry.file_size())});
  }
  return files;
}

at::Tensor bytes_of(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

// If the file cannot be read, zeros follow: their hash differs, and the receiver refuses the file.
void send_file(const parallel::Group& group, int64_t to, const fs::path& path, int64_t bytes, std::string& problem) {
  std::ifstream in(path, std::ios::binary);
  for (int64_t done = 0; done < bytes;) {
    at::Tensor block = at::full({std::min(kStreamBlockBytes, bytes - done)}, 0, at::kByte);
    if (!in.read(static_cast<char*>(block.mutable_data_ptr()), block.numel()) && problem.empty()) {
      problem = cat("cannot be read while it is sent: path=", path.string());
    }
    parallel::start_send(group, block, to).wait();
    done += block.numel();
  }
}

// Receives all announced bytes, even if they cannot be written.
void receive_file(const parallel::Group& group, int64_t from, const fs::path& path, int64_t bytes, std::string& problem) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (int64_t done = 0; done < bytes;) {
    at::Tensor block = at::empty({std::min(kStreamBlockBytes, bytes - done)}, at::kByte);
    parallel::start_receive(group, block, from).wait();
    out.write(static_cast<const char*>(block.const_data_ptr()), block.numel());
    done += block.numel();
  }
  out.close();
  if (!out && problem.empty()) problem = cat("cannot be written: path=", path.string());
}

CheckpointError not_copied(const fs::path& folder, const std::string& reason) {
  return {"checkpoint", cat("the copy for a neighbour failed: path=", folder.string(), ", reason=", reason),
          "The run goes on without it; see the disk and the network of both nodes"};
}

}  // namespace

bool is_plain_name(const std::string& name) {
  constexpr size_t kLongest = 255;
  return !name.empty() && name.size() <= kLongest && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

std::string listing_of(const std::vector<NamedFile>& files) {
  nlohmann::json list = nlohmann::json::array();
  for (const NamedFile& file : files) list.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return list.dump();
}

std::optional<std::vector<NamedFile>> parse_listing(const std::string& text) {
  std::vector<NamedFile> files;
  try {
    for (const auto& row : nlohmann::json::parse(text)) {
      if (!row.at("bytes").is_number_integer()) return {};
      files.push_back({row.at("name").get<std::string>(), row.at("bytes").get<int64_t>()});
      if (!is_plain_name(files.back().name) || files.back().bytes < 0) return {};
    }
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return files;
}

void send_checkpoint(const parallel::Group& group, int64_t to, const std::optional<fs::path>& folder,
                     const std::vector<std::string>& names) {
  std::vector<NamedFile> files;
  std::string problem;
  try {
    if (folder) files = files_in(*folder, names);
  } catch (const fs::filesystem_error& error) {
    files.clear();
    problem = error.what();
  }
  const at::Tensor listing = bytes_of(files.empty() ? std::string() : listing_of(files));
  parallel::start_send(group, at::full({1}, listing.numel(), at::kLong), to).wait();
  if (!files.empty()) parallel::start_send(group, listing, to).wait();
  for (const NamedFile& file : files) send_file(group, to, *folder / file.name, file.bytes, problem);
  if (!problem.empty()) throw not_copied(*folder, problem);
}

void send_patience(const parallel::Group& group, int64_t to) {
  parallel::start_send(group, at::full({1}, kPatience, at::kLong), to).wait();
}

namespace {

// The folder in which a checkpoint's files arrive; null if there is none this time. CheckpointError if writing fails.
std::unique_ptr<AsideFolder> receive_folder(const parallel::Group& group, int64_t from, const CheckpointStore& store) {
  at::Tensor length = at::empty({1}, at::kLong);
  int64_t bytes = kPatience;
  while (bytes == kPatience) {
    parallel::start_receive(group, length, from).wait();
    bytes = length.item<int64_t>();
  }
  if (bytes == 0) return nullptr;
  if (bytes < 0 || bytes > kLongestListing)
    throw CommError("parallel", "a received list of files is invalid", "Start the run again");
  at::Tensor text = at::empty({bytes}, at::kByte);
  parallel::start_receive(group, text, from).wait();
  const auto files = parse_listing({static_cast<const char*>(text.const_data_ptr()), static_cast<size_t>(bytes)});
  if (!files) throw CommError("parallel", "a received list of files is invalid", "Start the run again");
  std::unique_ptr<AsideFolder> aside;
  std::string problem;
  try {
    aside = std::make_unique<AsideFolder>(store.folder() / "step_copy");
  } catch (const DataError& error) {
    problem = error.what();
  }
  const fs::path nowhere("/dev/null");
  for (const NamedFile& file : *files) {
    receive_file(group, from, aside ? aside->path() / file.name : nowhere, file.bytes, problem);
  }
  if (!problem.empty()) throw not_copied(store.folder(), problem);
  return aside;
}

std::string index_text(const fs::path& folder) { return read_file(folder / kIndexFile, static_cast<uint64_t>(kLongestListing)); }

// The index, after a check that its files in the folder match it.
CheckpointIndex verified_index(const fs::path& folder) {
  const std::string text = index_text(folder);
  CheckpointIndex index = parse_checkpoint_index(text, (folder / kIndexFile).string());
  for (const NamedFile& file : files_in(folder, {})) {
    if (file.name == kIndexFile) continue;
    const auto known = index.files.find(file.name);
    if (known != index.files.end() && xxh3_64_of_file(folder / file.name) == known->second.xxh3) continue;
    throw CheckpointError("checkpoint", cat("a file is not what was sent: file=", file.name), "The run goes on without it");
  }
  return index;
}

}  // namespace

bool receive_checkpoint(const parallel::Group& group, int64_t from, CheckpointStore& store) {
  const std::unique_ptr<AsideFolder> aside = receive_folder(group, from, store);
  if (!aside) return false;
  try {
    const Checkpoint arrived(aside->path());  // every hash
    if (store.wants(arrived.index())) publish_over(aside->path(), store.path_of(arrived.index().position.iteration));
  } catch (const Error& error) {
    throw not_copied(store.folder(), error.what());
  }
  return true;
}

// A folder of this step that this node has written has the same index; else it belongs to another run, and stays as it is.
bool receive_files(const parallel::Group& group, int64_t from, const CheckpointStore& store) {
  const std::unique_ptr<AsideFolder> aside = receive_folder(group, from, store);
  if (!aside) return false;
  try {
    const fs::path target = store.path_of(verified_index(aside->path()).position.iteration);
    if (!fs::exists(target)) {
      publish_folder(aside->path(), target);
      return true;
    }
    if (index_text(aside->path()) != index_text(target)) {
      throw CheckpointError("checkpoint", cat("the folder of this step is of another run: path=", target.string()),
                            "Move it away");
    }
    for (const NamedFile& file : files_in(aside->path(), {})) fs::rename(aside->path() / file.name, target / file.name);
  } catch (const Error& error) {
    throw not_copied(store.folder(), error.what());
  } catch (const fs::filesystem_error& error) {
    throw not_copied(store.folder(), error.what());
  }
  return true;
}

}  // namespace welkin::train
