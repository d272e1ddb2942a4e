// SPDX-License-Identifier: Apache-2.0
#include "rack/client_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "rack/types.h"

namespace cairn::rack {

namespace {

constexpr std::string_view kBlanks = " \t\r";

// The next word, which is taken away with the blanks before it; empty at the end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

Result<void> take_line(std::string_view line, rpc::ClientKeys& keys) {
  const std::string_view role = take_word(line);
  const std::string_view name = take_word(line);
  const std::string_view text = take_word(line);
  if (text.empty() || !take_word(line).empty()) {
    return fail(Errc::kInvalid, "not ROLE NAME KEY in line");
  }
  if (role != "reader" && role != "writer") {
    return fail(Errc::kInvalid, "a role that is neither reader nor writer in line");
  }
  if (!check_client_name(name)) return fail(Errc::kInvalid, "no name of a client in line");
  const Result<nvme::TlsKey> key = nvme::TlsKey::parse(text);
  if (!key) return fail(key.error().code(), "no TLS key (NVMeTLSkey-1:01:BASE64:) in line");
  Result<rpc::NamedKey> named = named_key(name, *key);
  if (!named) return fail(named.error().code(), "no name of a client in line");
  if (keys.size() == kClientsMax) return fail(Errc::kLimit, "more than 512 clients with line");
  const Result<void> added =
      keys.add(std::move(*named), role == "writer" ? rpc::Role::kWriter : rpc::Role::kReader);
  if (!added) return fail(added.error().code(), "a name for the second time in line");
  return {};
}

}  // namespace

Result<rpc::NamedKey> named_key(std::string_view name, const nvme::TlsKey& key) {
  if (const Result<void> fits = check_client_name(name); !fits) return fail(fits.error());
  const nvme::TlsNames names{.host = name, .subsystem = kMetadataNqn};
  const Result<nvme::TlsPsk> psk = key.psk_of(names, nvme::TlsIdentityVersion::k1);
  if (!psk) return fail(psk.error());
  return rpc::NamedKey{.name = std::string(name),
                       .identity = psk->identity.text(),
                       .hash = psk->identity.hash,
                       .key = crypto::KeptSecret(psk->key.bytes())};
}

Result<rpc::ClientKeys> parse_client_keys(std::string_view text) {
  rpc::ClientKeys keys;
  for (int32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (const Result<void> taken = take_line(line, keys); !taken) {
      return fail(taken.error().code(), taken.error().what(), number);
    }
  }
  if (keys.empty()) return fail(Errc::kInvalid, "no line ROLE NAME KEY");
  return keys;
}

std::optional<std::string> name_in(std::string_view identity) {
  Result<nvme::TlsIdentity> parsed = nvme::TlsIdentity::parse(identity);
  const bool is_ours =
      parsed && parsed->nqn == kMetadataNqn && check_client_name(parsed->host_nqn).has_value();
  if (!is_ours) return std::nullopt;
  return std::move(parsed->host_nqn);
}

}  // namespace cairn::rack
