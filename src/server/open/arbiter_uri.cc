// SPDX-License-Identifier: Apache-2.0
#include "server/open/arbiter_uri.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/percent.h"
#include "base/words.h"
#include "rack/client_keys.h"
#include "server/common/run_folder.h"
#include "server/open/key_file.h"

namespace cairn::server {

namespace {

constexpr size_t kServersMax = 16;

Attempt<env::Address> parse_server(std::string_view text) {
  Result<env::Address> address = env::Address::parse(text);
  const bool is_local = address && address->family == env::Address::Family::kLocal;
  if (address && (is_local || address->port != 0)) return std::move(*address);
  return refuse(
      fmt::format("{} is no address of an arbiter: write one like 127.0.0.1:{} or unix:SOCKET",
                  in_quotes(text), kArbiterPort));
}

Attempt<void> take_option(std::string_view option, ArbiterUri& uri) {
  const size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  std::string* const into = key == "tls_key" ? &uri.tls_key : key == "name" ? &uri.name : nullptr;
  if (into == nullptr || equals == std::string_view::npos) {
    return refuse(
        fmt::format("{} is no option of an arbiter's address: it has tls_key=FILE and "
                    "name=NAME",
                    in_quotes(option)));
  }
  std::optional<std::string> value = percent_decode(option.substr(equals + 1));
  if (!value || value->empty() || value->find('\0') != std::string::npos) {
    return refuse(fmt::format("{} has no value that can be used", in_quotes(option)));
  }
  *into = std::move(*value);
  return {};
}

}  // namespace

Attempt<ArbiterUri> ArbiterUri::parse(std::string_view text) {
  ArbiterUri uri;
  std::string_view rest = text;
  std::string_view options;
  if (const size_t mark = rest.find('?'); mark != std::string_view::npos) {
    options = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  while (true) {
    const size_t comma = rest.find(',');
    Attempt<env::Address> server = parse_server(rest.substr(0, comma));
    if (!server) return std::unexpected(server.error());
    if (uri.servers.size() == kServersMax) {
      return refuse(fmt::format("more than {} arbiters: name fewer of them", kServersMax));
    }
    uri.servers.push_back(std::move(*server));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  while (!options.empty()) {
    const size_t end = options.find('&');
    if (const Attempt<void> taken = take_option(options.substr(0, end), uri); !taken) {
      return std::unexpected(taken.error());
    }
    options = end == std::string_view::npos ? std::string_view() : options.substr(end + 1);
  }
  if (uri.tls_key.empty() != uri.name.empty()) {
    return refuse("an arbiter knows a key by its name: write both, ?tls_key=FILE&name=NAME");
  }
  return uri;
}

std::string ArbiterUri::servers_text() const {
  std::string text;
  for (const env::Address& each : servers) text += (text.empty() ? "" : ",") + each.text();
  return text;
}

std::string own_arbiter() { return fmt::format("unix:{}/arbiter.sock", run_folder()); }

std::string default_arbiter() { return "unix:" + socket_to_ask("arbiter.sock"); }

Attempt<rpc::ClientOptions> arbiter_client(const ArbiterUri& uri) {
  rpc::ClientOptions options{.servers = uri.servers, .texts = arbiter::error_texts()};
  if (uri.tls_key.empty()) return options;
  const Attempt<nvme::TlsKey> key = read_tls_key_file(uri.tls_key);
  if (!key) return std::unexpected(key.error());
  Result<rpc::NamedKey> named = rack::named_key(uri.name, *key);
  if (!named) {
    return refuse(fmt::format("name={}: {}", in_quotes(uri.name), named.error().what()));
  }
  options.security = std::make_shared<const rpc::KeySecurity>(std::move(*named), options.texts);
  return options;
}

Attempt<std::unique_ptr<arbiter::RemoteArbiter>> make_remote_arbiter(
    env::Env& env, const ArbiterUri& uri, std::function<void(std::string)> on_refused) {
  Attempt<rpc::ClientOptions> client = arbiter_client(uri);
  if (!client) return std::unexpected(client.error());
  return std::make_unique<arbiter::RemoteArbiter>(
      env, arbiter::RemoteArbiterOptions{.servers = std::move(client->servers),
                                         .security = std::move(client->security),
                                         .on_refused = std::move(on_refused)});
}

}  // namespace cairn::server
