// SPDX-License-Identifier: Apache-2.0
// RemoteArbiter: the arbiter that leads, wherever it runs, of those at some addresses.
//
// Whoever does not lead or does not answer is left for the next one, as long as nothing can have
// been done (rpc/client.h). A call of ArbiterLink that may have been heard is not repeated here:
// its owner repeats it in the next turn (volume::Session). Only reading, and renewing a lease, are.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "arbiter/arbiter_wire_format.h"
#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "rpc/client.h"
#include "rpc/security.h"
#include "task/cancel.h"
#include "task/task.h"
#include "volume/arbiter_link.h"

namespace cairn::arbiter {

struct RemoteArbiterOptions {
  std::vector<env::Address> servers;              // at least one
  Duration timeout = 10_s;                        // of a call, with everything that is tried
  Duration connect_timeout = 2_s;                 // of one attempt
  std::shared_ptr<const rpc::Security> security;  // none: nothing is encrypted
  // Told who we are to the servers when they refuse us: errors cannot say it. May be empty.
  std::function<void(std::string)> on_refused;
};

// What a client says to people; also for its rpc::KeySecurity.
rpc::ErrorTexts error_texts();

class RemoteArbiter final : public volume::ArbiterLink {
 public:
  RemoteArbiter(env::Env& env, RemoteArbiterOptions options);

  // Clients: ArbiterLink.
  task::Task<Result<volume::Opened>> open(volume::OpenArgs args, task::CancelToken token) override;
  task::Task<Result<volume::Renewed>> renew(volume::Session session,
                                            task::CancelToken token) override;
  task::Task<Result<void>> close(volume::Session session, bool is_clean,
                                 task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> table(volume::Session session, uint32_t first,
                                                         task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> allocate(volume::Session session,
                                                            std::vector<uint32_t> extents,
                                                            task::CancelToken token) override;
  task::Task<Result<void>> release(volume::Session session, std::vector<uint32_t> extents,
                                   task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> report(volume::Session session,
                                                          std::vector<volume::LegReport> legs,
                                                          task::CancelToken token) override;
  task::Task<Result<volume::Mapping>> relocate(volume::Session session, volume::Relocation what,
                                               task::CancelToken token) override;
  task::Task<Result<std::vector<volume::CopyPlace>>> begin_copies(volume::Session session,
                                                                  std::vector<uint32_t> extents,
                                                                  task::CancelToken token) override;
  task::Task<Result<std::vector<volume::Mapping>>> end_copies(volume::Session session,
                                                              std::vector<volume::CopyEnd> copies,
                                                              task::CancelToken token) override;
  task::Task<Result<volume::Asked>> asked(volume::Session session, Duration wait,
                                          task::CancelToken token) override;
  task::Task<Result<void>> freeze(volume::Session session, std::string snapshot, bool is_ready,
                                  task::CancelToken token) override;

  // Operators. A request gives the answer that its Call has (answer_index()), or says why not: in
  // the words of the arbiter, or of the way there. `T` void: there is nothing to say.
  template <class T>
  using Said = std::expected<T, Refusal>;
  template <class T = void>
  task::Task<Said<T>> ask(CallArgs request, task::CancelToken token = {}) {
    Said<Answer> answer = co_await ask_operator(std::move(request), token);
    if (!answer) co_return std::unexpected(answer.error());
    if constexpr (std::is_void_v<T>) {
      co_return Said<T>();
    } else {
      co_return std::move(std::get<T>(*answer));
    }
  }

  // Ends what is under way with kClosed, and the connection. Once, before it is destroyed.
  task::Task<void> disconnect() { return client_.close(); }

 private:
  template <class T>
  task::Task<Result<T>> ask_link(CallArgs request, task::CancelToken token);
  task::Task<Said<Answer>> ask_operator(CallArgs request, task::CancelToken token);
  task::Task<Result<rpc::Reply>> send(CallArgs request, task::CancelToken token);

  rpc::Client client_;
};

}  // namespace cairn::arbiter
