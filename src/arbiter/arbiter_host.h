// SPDX-License-Identifier: Apache-2.0
// ArbiterHost: runs an arbiter whenever this process leads, and stands by otherwise.
//
//   ArbiterHost host(env, parts, options);
//   gate.spawn(host.run());                                  // until close()
//   Result<ArbiterHost::Use> arbiter = host.use();           // kUnreachable: another leads
//   if (arbiter) co_await (*arbiter)->create(...);
//
// As an ArbiterLink it is the link of clients in the same process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arbiter/arbiter.h"
#include "meta/election.h"

namespace cairn::arbiter {

struct ArbiterHostOptions {
  ArbiterOptions arbiter;
  Duration election_ttl = 5_s;  // how long after the leader's death another leads, at most
  // Told when this process begins to lead, and when it does so no more; may be empty.
  std::function<void(bool is_leading)> on_change = {};
};

class ArbiterHost final : public volume::ArbiterLink {
 public:
  // What the parts refer to outlives it. One core.
  ArbiterHost(env::Env& env, ArbiterParts parts, ArbiterHostOptions options)
      : env_(env), parts_(parts), options_(std::move(options)) {}

  // The arbiter that leads, which stays while somebody has this.
  class Use {
   public:
    Use(ArbiterHost& host, Arbiter& arbiter) : host_(&host), arbiter_(&arbiter) { ++host.users_; }
    Use(Use&& other) noexcept
        : host_(std::exchange(other.host_, nullptr)), arbiter_(other.arbiter_) {}
    Use& operator=(Use&&) = delete;
    ~Use() {
      if (host_ != nullptr && --host_->users_ == 0) host_->unused_.set();
    }
    Arbiter* operator->() const { return arbiter_; }
    Arbiter& operator*() const { return *arbiter_; }

   private:
    ArbiterHost* host_;
    Arbiter* arbiter_;
  };
  Result<Use> use();
  bool is_leading() const { return current_ != nullptr && current_->is_working(); }

  // Leads when it can, until close(). Why it does not lead although it was elected: last_error().
  task::Task<void> run();
  const std::optional<Error>& last_error() const { return last_error_; }
  // Ends run(), which the caller awaits.
  void stop() { stop_.request(); }

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

 private:
  // A client's call by the arbiter that leads, which stays until it has ended.
  template <class T, class... Args>
  task::Task<Result<T>> pass(task::Task<Result<T>> (volume::ArbiterLink::*call)(Args...),
                             std::type_identity_t<Args>... args);
  task::Task<Result<void>> lead(task::CancelToken token);
  task::Task<Result<void>> serve(meta::Leadership& leadership, task::CancelToken token);

  env::Env& env_;
  const ArbiterParts parts_;
  const ArbiterHostOptions options_;
  Arbiter* current_ = nullptr;  // null: it does not lead
  size_t users_ = 0;
  task::Event unused_;
  std::optional<Error> last_error_;
  task::CancelSource stop_;
};

}  // namespace cairn::arbiter
