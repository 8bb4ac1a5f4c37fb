// SPDX-License-Identifier: Apache-2.0
// libFuzzer: no bytes may make the reader of event files crash, hang or throw anything but a DataError. The input is read twice:
// as a file, where nearly every change breaks a checksum, and as the data of one whole record, so that the messages inside are
// reached.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "core/error.h"
#include "observe/events/event_reader.h"
#include "observe/events/event_writer.h"

namespace {

void read(std::string_view bytes) {
  welkin::observe::EventScalars scalars;
  try {
    welkin::observe::read_events(std::as_bytes(std::span(bytes)), "fuzz", scalars);
  } catch (const welkin::DataError&) {  // the one legal way to refuse
  }
  size_t points = 0;
  for (const auto& [tag, values] : scalars.by_tag) points += values.size();
  if (points > bytes.size()) std::abort();  // each takes more than a byte
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  read(welkin::observe::tf_record(bytes));
  return 0;
}
