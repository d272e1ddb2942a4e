// SPDX-License-Identifier: Apache-2.0
#include "apps/kv/client.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "apps/common/command.h"
#include "base/bytes.h"
#include "base/error_text.h"
#include "base/words.h"
#include "env/io.h"
#include "server/common/reach.h"
#include "server/open/key_file.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "tls/context.h"
#include "tls/stream.h"

namespace cairn::apps {

namespace {

Problem no_answer(const std::string& at, const Error& error) {
  return {
      fmt::format("no answer from {}: {}: look whether 'cairn kv serve' runs there, or name "
                  "another address with --at",
                  at, error_text(error))};
}

}  // namespace

KvClient::KvClient(CLI::App& app) {
  add_value(app, "--at ADDRESS",
            fmt::format("where keys and values are served (127.0.0.1:{})", kRespPort),
            [this](const std::string& text) -> Attempt<void> {
              Attempt<env::Address> at = parse_door_address(text);
              if (!at) return std::unexpected(at.error());
              at_ = std::move(*at);
              return {};
            });
  const auto add_file = [&app](std::string_view spec, std::string& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      into = text;
      return {};
    });
  };
  add_file("--password-file FILE", password_file_, "the password that the server asks for");
  add_file("--tls-ca FILE", ca_file_,
           "connect through TLS, to a server that one of these has signed");
  add_number(app, "--timeout SECONDS", timeout_s_, 0.1, 86400, "how long to wait (60)");
}

task::Task<Attempt<door::resp::Value>> KvClient::Door::call(std::vector<std::string_view> args) {
  Result<door::resp::Value> reply = co_await client_.call(args, token_);
  if (!reply) co_return std::unexpected(no_answer(at_, reply.error()));
  if (reply->is_error()) {
    co_return refuse(fmt::format("the server at {} says: {}", at_, escaped(reply->text)));
  }
  co_return std::move(*reply);
}

Attempt<int> KvClient::run(const Errand& errand) const {
  return run_errand<int>([this, &errand](env::Env& env) { return run_in(env, errand); });
}

task::Task<Attempt<int>> KvClient::run_in(env::Env& env, const Errand& errand) const {
  const Time until = env.now() + Duration::from_seconds(timeout_s_);
  task::Deadline deadline(env, until, env.stop_token());
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env, at_, {}, deadline.token());
  if (!stream) co_return std::unexpected(no_answer(at_.text(), stream.error()));
  if (ca_file_.empty()) {
    const Attempt<int> status = co_await ask(std::move(*stream), errand, deadline.token());
    co_return status;
  }
  const Attempt<tls::ClientCertificate> trusted =
      server::read_client_certificate({.ca = ca_file_, .chain = {}, .key = {}});
  if (!trusted) co_return std::unexpected(trusted.error());
  const tls::Context context(*trusted);
  const tls::ServerName name{.text = server::reach(at_).host};
  task::Gate lingering;
  Attempt<int> status = kExitFailed;
  auto secure = std::make_unique<tls::TlsStream>(env, std::move(*stream), context, name, lingering);
  const Result<void> shaken =
      co_await secure->shake_hands(tls::kHandshakeTimeout, deadline.token());
  if (shaken) {
    status = co_await ask(std::move(secure), errand, deadline.token());
  } else {
    status = std::unexpected(no_answer(at_.text(), shaken.error()));
    secure.reset();
  }
  co_await lingering.close();
  co_return status;
}

task::Task<Attempt<int>> KvClient::ask(std::unique_ptr<env::Stream> stream, const Errand& errand,
                                       task::CancelToken token) const {
  door::resp::RespClient client(std::move(stream));
  Door door(client, token, at_.text());
  if (!password_file_.empty()) {
    const Attempt<server::Password> password = server::read_password_file(password_file_);
    if (!password) co_return std::unexpected(password.error());
    const std::string_view word = as_text(password->bytes());
    const Attempt<door::resp::Value> known = co_await door.call({"AUTH", word});
    if (!known) co_return std::unexpected(known.error());
  }
  const Attempt<int> status = co_await errand(door);
  co_return status;
}

}  // namespace cairn::apps
