// SPDX-License-Identifier: Apache-2.0
#include "parallel/store/sealed_channel.h"

#include <sodium.h>

#include <array>

#include "core/error.h"

namespace welkin::parallel {
namespace {

static_assert(SealedChannel::kOverhead == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(sizeof(JobKey) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

using MessageNumber = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

MessageNumber numbered(uint64_t number) {
  MessageNumber bytes{};
  for (size_t i = 0; i < sizeof number; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  return bytes;
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

SealedChannel::SealedChannel(const JobKey& key, const Nonce& of_client, const Nonce& of_server, ChannelSide side) {
  std::array<unsigned char, 2 * sizeof(Nonce)> nonces{};
  std::copy(of_client.begin(), of_client.end(), nonces.begin());
  std::copy(of_server.begin(), of_server.end(), nonces.begin() + sizeof(Nonce));
  std::array<unsigned char, 2 * sizeof(JobKey)> keys{};  // from the client, from the server
  const int code = crypto_generichash(keys.data(), keys.size(), nonces.data(), nonces.size(), key.data(), key.size());
  WELKIN_CHECK(code == 0, "sizes of a keyed hash");
  JobKey& of_client_key = side == ChannelSide::Client ? to_seal_ : to_open_;
  JobKey& of_server_key = side == ChannelSide::Client ? to_open_ : to_seal_;
  std::copy(keys.begin(), keys.begin() + sizeof(JobKey), of_client_key.begin());
  std::copy(keys.begin() + sizeof(JobKey), keys.end(), of_server_key.begin());
}

std::string SealedChannel::seal(std::string_view message) {
  std::string sealed(message.size() + kOverhead, '\0');
  const MessageNumber number = numbered(sealed_++);
  crypto_aead_chacha20poly1305_ietf_encrypt(bytes_of(sealed), nullptr, bytes_of(message), message.size(), nullptr, 0, nullptr,
                                            number.data(), to_seal_.data());
  return sealed;
}

std::optional<std::string> SealedChannel::open(std::string_view sealed) {
  if (sealed.size() < kOverhead) return std::nullopt;
  std::string message(sealed.size() - kOverhead, '\0');
  const MessageNumber number = numbered(opened_++);
  const int code = crypto_aead_chacha20poly1305_ietf_decrypt(bytes_of(message), nullptr, nullptr, bytes_of(sealed), sealed.size(),
                                                             nullptr, 0, number.data(), to_open_.data());
  if (code != 0) return std::nullopt;
  return message;
}

}  // namespace welkin::parallel
