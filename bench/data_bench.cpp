// SPDX-License-Identifier: Apache-2.0
// bench_data: the C++ side of bench/data.sh.
//   bench_data write-box FILE EDGE CHUNK DEFLATE | write-npy FOLDER EDGE | write-years FOLDER YEARS STEPS CHANNELS HEIGHT WIDTH
//   bench_data serve crops|pairs|copy PATH [WORKERS [BATCH [turns|uncached]]]   one line "SECONDS" in, one JSON object out, until
//   the end bench_data cold crops PATH SAMPLES    bytes from the device, the page cache emptied before bench_data memory PATH
//   BATCHES        resident memory after a tenth of the batches and at the end
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data_files.h"
#include "data_readers.h"

namespace welkin::bench {
namespace {

using Words = std::vector<std::string>;

int64_t number_at(const Words& words, size_t i, int64_t otherwise) {
  return i < words.size() ? std::strtoll(words[i].c_str(), nullptr, 10) : otherwise;
}

std::unique_ptr<Reader> open_reader(const Words& words) {
  const std::string& kind = words.at(1);
  const auto has = [&](const char* word) { return std::ranges::count(words, word) > 0; };
  const ReaderOptions options{
      .workers = number_at(words, 3, 0), .batch = number_at(words, 4, 4), .turns = has("turns"), .cached = !has("uncached")};
  if (kind == "copy") return open_copy_loop(words.at(2), options);
  return kind == "pairs" ? open_pair_reader(words.at(2), options) : open_box_reader(words.at(2), options);
}

void print_slice(const Slice& slice) {
  std::cout << cat(R"({"samples": )", slice.samples, R"(, "seconds": )", slice.seconds, R"(, "delivered_bytes": )",
                   slice.delivered_bytes, R"(, "requested_bytes": )", slice.requested_bytes, R"(, "batches": )", slice.batches,
                   R"(, "page_faults": )", slice.page_faults, "}")
            << std::endl;
}

void serve(const Words& words) {
  const auto reader = open_reader(words);
  std::cout << "ready" << std::endl;
  for (double seconds = 0; std::cin >> seconds;) print_slice(reader->run(seconds));
}

// Read by this process from block devices (proc(5), /proc/self/io).
uint64_t device_bytes() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    uint64_t value = 0;
    io >> value;
    if (name == "read_bytes:") return value;
  }
  return 0;
}

void drop_pages(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files{path};
  if (std::filesystem::is_directory(path)) {
    files.assign(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator());
  }
  for (const auto& file : files) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
}

void cold(const Words& words) {
  drop_pages(words.at(2));
  const auto reader = open_reader({"", words.at(1), words.at(2), "0", "1"});
  const uint64_t before = device_bytes();
  Slice sum;
  while (sum.samples < number_at(words, 3, 8)) {
    const Slice slice = reader->run(0);
    sum.samples += slice.samples;
    sum.seconds += slice.seconds;
    sum.delivered_bytes += slice.delivered_bytes;
  }
  std::cout << cat(R"({"samples": )", sum.samples, R"(, "seconds": )", sum.seconds, R"(, "delivered_bytes": )",
                   sum.delivered_bytes, R"(, "device_bytes": )", device_bytes() - before, "}")
            << std::endl;
}

void memory(const Words& words) {
  const int64_t batches = number_at(words, 2, 10000);
  const auto reader = open_box_reader(words.at(1), {.crop = 16, .workers = 2, .batch = 4});
  uint64_t early = 0;
  for (int64_t done = 0; done < batches;) {
    done += reader->run(0).samples / 4;
    if (early == 0 && done >= batches / 10) early = resident_bytes();
  }
  std::cout << cat(R"({"batches": )", batches, R"(, "resident_early": )", early, R"(, "resident_end": )", resident_bytes(), "}")
            << std::endl;
}

void run(const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "write-box") {
    write_box_hdf5(words.at(1), number_at(words, 2, 64), number_at(words, 3, 0), static_cast<int>(number_at(words, 4, 0)));
  } else if (verb == "write-npy") {
    const std::filesystem::path folder = words.at(1);
    std::filesystem::create_directories(folder);
    write_box_npy(folder / "data.npy", number_at(words, 2, 64), 4);
    write_box_npy(folder / "label.npy", number_at(words, 2, 64), 5);
  } else if (verb == "write-years") {
    write_years(words.at(1), number_at(words, 2, 1), number_at(words, 3, 4), number_at(words, 4, 20), number_at(words, 5, 360),
                number_at(words, 6, 720));
  } else if (verb == "serve") {
    serve(words);
  } else if (verb == "cold") {
    cold(words);
  } else if (verb == "memory") {
    memory(words);
  } else {
    throw ConfigError("bench", cat("unknown verb: verb=", verb), "See the top of bench/data_bench.cpp");
  }
}

}  // namespace
}  // namespace welkin::bench

int main(int argc, char** argv) {
  try {
    welkin::bench::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_data: " << error.what() << std::endl;
    return 1;
  }
}
