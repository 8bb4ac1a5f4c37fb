// SPDX-License-Identifier: Apache-2.0
// libFuzzer: one end of a connection to the rendezvous store. Where the first byte is even, the rest comes from somebody without
// the job's key: nothing of it opens. Else it is a message of the other end, which opens as it was, once, and in its order.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "parallel/store/job_key.h"
#include "parallel/store/sealed_channel.h"
#include "parallel/store/store_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace welkin::parallel;
  if (size == 0) return 0;
  static const JobKey key = job_key("the secret of a job in a fuzzer");
  const Nonce of_client{1}, of_server{2};
  SealedChannel server(key, of_client, of_server, ChannelSide::Server);
  const std::string said(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (frame_length(said) > kMostFrameBytes && said.size() > kMostFrameBytes) std::abort();
  if (data[0] % 2 == 0) {
    if (server.open(said)) std::abort();
    return 0;
  }
  SealedChannel client(key, of_client, of_server, ChannelSide::Client);
  std::string sealed = client.seal(said);
  if (frame_length(framed(sealed)) != sealed.size()) std::abort();
  if (data[0] % 4 == 1) sealed[data[0] / 4 % sealed.size()] ^= 1;
  const auto opened = server.open(sealed);
  if (opened.has_value() != (data[0] % 4 == 3) || (opened && *opened != said)) std::abort();
  if (server.open(sealed)) std::abort();  // played back
  return 0;
}
