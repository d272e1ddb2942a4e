// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/server.h"

#include <optional>
#include <utility>

#include "base/list.h"
#include "door/nbd/negotiation.h"
#include "door/nbd/session.h"
#include "env/call.h"
#include "stream/accept.h"
#include "task/deadline.h"
#include "task/sync.h"
#include "task/when_all.h"
#include "tls/context.h"

namespace cairn::door::nbd {

using Visitor = stream::Reception::Visitor;

namespace {

// Why a client did not come in; empty: it did not want to, or that was told.
std::string why_refused(const Error& error, const std::string& refusal) {
  switch (error.code()) {
    case Errc::kCancelled:
      return "";
    case Errc::kTimedOut:
      return "it took too long to choose an export";
    case Errc::kClosed:
    case Errc::kReset:
      return refusal;
    default:
      return error.what();
  }
}

}  // namespace

// What one core has of a server: its drives and connections. Made and destroyed on that core.
class NbdServer::PerCore {
 public:
  PerCore(env::Env& env, NbdServer& server)
      : env_(env),
        server_(server),
        control_(server.env_.core()),
        options_(server.options_),
        exports_(env) {
    const NbdOptions& options = options_;
    if (options.keys != nullptr) tls_ = std::make_unique<tls::Context>(tls::Role::kServer);
    if (options.certificate != nullptr) tls_ = std::make_unique<tls::Context>(*options.certificate);
  }

  CoreExports& exports() { return exports_; }

  // The life of one connection.
  task::Task<void> serve(env::Connection connection, Visitor& visitor) {
    if (stopping_.requested()) co_return;
    Line line{.stream = env_.open(std::move(connection)), .receiver = nullptr};
    const env::Address peer = line.stream->peer();
    const bool admitted = co_await env::call_on(
        env_, control_, [&](env::Env&) { return server_.admit(visitor, peer); });
    if (!admitted) co_return;
    task::CancelSource entering(stopping_.token());
    visitor.end = [&entering] { entering.request(); };
    co_await serve_visitor(std::move(line), visitor, entering);
    visitor.end = nullptr;
  }
  // Ends the client that has been idle for longest, if one has for long enough.
  bool end_idle() {
    Session* longest = nullptr;
    Duration max = options_.idle_timeout;
    members_.for_each([&](Member& member) {
      const std::optional<Time> since = member.session.idle_since();
      if (!since || env_.now() - *since < max) return;
      longest = &member.session;
      max = env_.now() - *since;
    });
    if (longest != nullptr) longest->drain();
    return longest != nullptr;
  }
  // Done when nobody uses the export any more, and its drive is closed.
  task::Task<void> remove(const SharedExport& shared, Time until) {
    exports_.hide(shared);
    for_each_user(shared, [](User& user) {
      user.entering.request();
      if (user.session != nullptr) user.session->drain();
    });
    task::Deadline deadline(env_, until);
    bool in_time = true;
    while (is_used(shared)) {
      left_.reset();
      const Result<void> changed =
          co_await left_.wait(in_time ? deadline.token() : task::CancelToken());
      if (changed) continue;
      in_time = false;
      for_each_user(shared, [](User& user) {
        if (user.session != nullptr) user.session->stop();
      });
    }
    co_await exports_.close(shared);
  }
  // Takes no more requests; done when all connections have ended, or `until` has passed.
  task::Task<void> drain(Time until) {
    stopping_.request();
    members_.for_each([](Member& member) { member.session.drain(); });
    task::Deadline deadline(env_, until);
    while (!members_.empty()) {
      left_.reset();
      const Result<void> changed = co_await left_.wait(deadline.token());
      if (!changed) co_return;
    }
  }
  void stop() {
    stopping_.request();
    members_.for_each([](Member& member) { member.session.stop(); });
  }

 private:
  struct Member : ListHook<> {
    explicit Member(Session& its) : session(its) {}
    Session& session;
  };

  // Who has come in, from its first question on.
  struct User : ListHook<> {
    User(Visit& its, task::CancelSource& source) : visit(its), entering(source) {}
    Visit& visit;
    task::CancelSource& entering;
    Session* session = nullptr;  // null: it is still choosing
  };

  template <class F>
  void for_each_user(const SharedExport& shared, F tell) {
    users_.for_each([&](User& user) {
      if (user.visit.uses(shared)) tell(user);
    });
  }
  bool is_used(const SharedExport& shared) {
    bool used = false;
    for_each_user(shared, [&used](User&) { used = true; });
    return used;
  }

  task::Task<void> serve_visitor(Line its_line, Visitor& visitor, task::CancelSource& entering) {
    task::Gate lingering;
    Visit visit(env_, exports_, server_.found_);
    User user(visit, entering);
    users_.push_back(user);
    {
      Line line = std::move(its_line);
      const Result<Agreement> agreement =
          co_await negotiate(line, visit, lingering, entering.token());
      if (agreement) {
        co_await env::call_on(env_, control_,
                              [&](env::Env&) { server_.reception_.prove(visitor); });
      }
      if (agreement && !entering.requested()) co_await serve_session(line, *agreement, user);
      line.receiver.reset();
      // A client that sees the end of its connection finds free what it used.
      co_await visit.leave();
      user.unlink();
      left_.set();
    }
    co_await lingering.close();
  }
  task::Task<void> serve_session(Line& line, const Agreement& agreed, User& user) {
    const Agreement agreement = agreed;
    Session session(env_, *line.stream, *line.receiver, agreement, options_);
    Member member(session);
    members_.push_back(member);
    user.session = &session;
    co_await session.run();
    user.session = nullptr;
    member.unlink();
    left_.set();
  }
  task::Task<Result<Agreement>> negotiate(Line& line, Visit& visit, task::Gate& lingering,
                                          task::CancelToken entering) {
    task::Deadline deadline(env_, env_.now() + options_.negotiation_timeout, entering);
    Negotiation negotiation(env_, visit, options_, tls_.get(), lingering);
    const env::Address peer = line.stream->peer();
    Result<Agreement> agreement = co_await negotiation.run(line, deadline.token());
    if (!agreement && options_.on_refused) {
      const std::string why = why_refused(agreement.error(), negotiation.refusal());
      if (!why.empty()) {
        co_await env::call_on(env_, control_,
                              [&](env::Env&) { options_.on_refused({.peer = peer, .why = why}); });
      }
    }
    co_return agreement;
  }

  env::Env& env_;
  NbdServer& server_;  // on the control core
  const CoreId control_;
  const NbdOptions& options_;
  CoreExports exports_;
  std::unique_ptr<tls::Context> tls_;
  List<Member> members_;
  List<User> users_;
  task::Event left_;  // a member is gone, or a user
  task::CancelSource stopping_;
};

NbdServer::NbdServer(env::Env& env, const NbdOptions& options)
    : env_(env),
      options_(options),
      found_(env, options.finder),
      cores_(env.core_count()),
      reception_(env, options.connections, options.on_refused) {}

NbdServer::~NbdServer() = default;

task::Task<Result<void>> NbdServer::add(ExportOptions options) {
  if (options.name.size() > kStringMax || options.description.size() > kStringMax) {
    co_return fail(Errc::kInvalid, "an export's name or description of more than 4096 bytes");
  }
  if (find(options.name) != nullptr) co_return fail(Errc::kExists, "an export of that name");
  exports_.push_back(std::make_unique<SharedExport>(std::move(options), env_.core_count()));
  SharedExport& shared = *exports_.back();
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    co_await env::call_on(env_, CoreId(i),
                          [this, &shared](env::Env& there) { on(there).exports().add(shared); });
  }
  co_return Result<void>{};
}

task::Task<Result<void>> NbdServer::remove(std::string_view name, Time until) {
  const SharedExport* const shared = find(name);
  if (shared == nullptr) co_return fail(Errc::kNotFound, "no export of that name");
  std::vector<task::Task<void>> calls;
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    calls.push_back(env::call_on(env_, CoreId(i), [this, shared, until](env::Env& there) {
      return on(there).remove(*shared, until);
    }));
  }
  co_await task::when_all(std::move(calls));
  std::erase_if(exports_, [shared](const auto& each) { return each.get() == shared; });
  co_return Result<void>{};
}

SharedExport* NbdServer::find(std::string_view name) const {
  for (const auto& each : exports_) {
    if (each->options.name == name) return each.get();
  }
  return nullptr;
}

Result<env::Address> NbdServer::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at, {});
  if (!listener) return fail(listener.error());
  const env::Address local = (*listener)->local();
  listeners_.push_back(std::move(*listener));
  accepting_.spawn(stream::accept_each(
      env_, *listeners_.back(), stop_.token(),
      [this](env::Connection connection) { gate_.spawn(serve(std::move(connection))); }));
  return local;
}

NbdServer::PerCore& NbdServer::on(env::Env& there) {
  std::unique_ptr<PerCore>& mine = cores_[there.core().value()];
  if (mine == nullptr) mine = std::make_unique<PerCore>(there, *this);
  return *mine;
}

task::Task<void> NbdServer::serve(env::Connection connection) {
  const CoreId core(next_core_++ % env_.core_count());
  Visitor visitor(core);
  co_await env::call_on(
      env_, core, [&](env::Env& there) { return on(there).serve(std::move(connection), visitor); });
  co_await reception_.leave(visitor);
}

// Who finds no place is dropped, which its client sees.
bool NbdServer::admit(Visitor& visitor, const env::Address& peer) {
  const bool is_full = connections() >= options_.connections.connections_max;
  if (is_full && !is_making_room_) gate_.spawn(make_room());
  return reception_.admit(visitor, peer);
}

task::Task<void> NbdServer::make_room() {
  is_making_room_ = true;
  bool made = false;
  for (uint32_t i = 0; i < env_.core_count() && !made; ++i) {
    made = co_await env::call_on(env_, CoreId(i),
                                 [this](env::Env& there) { return on(there).end_idle(); });
  }
  is_making_room_ = false;
}

task::Task<Result<void>> NbdServer::resize(std::string_view name, uint64_t bytes) {
  const Result<Export*> here = on(env_).exports().find(name);
  if (!here) co_return fail(here.error());
  const uint32_t block = (*here)->block_size();
  if (bytes == 0 || !is_aligned(bytes, block)) {
    co_return fail(Errc::kInvalid, "a size is a multiple of the block size",
                   static_cast<int>(block));
  }
  const uint64_t before = (*here)->drive().geometry().blocks;
  Result<void> done;
  uint32_t reached = 0;
  for (; done && reached < env_.core_count(); ++reached) {
    done = co_await resize_on(CoreId(reached), name, bytes / block);
  }
  if (done) co_return done;
  for (; reached > 0; --reached) {
    const Result<void> undone = co_await resize_on(CoreId(reached - 1), name, before);
    if (!undone) {
      co_return fail(Errc::kIo,
                     "a core cannot resize the drive, and another not undo it: serve the drive "
                     "anew; the core that cannot undo it",
                     static_cast<int32_t>(reached - 1));
    }
  }
  co_return done;
}

task::Task<Result<void>> NbdServer::resize_on(CoreId core, std::string_view name, uint64_t blocks) {
  Result<void> done = co_await env::call_on(
      env_, core, [&](env::Env& there) { return on(there).exports().resize(name, blocks); });
  co_return done;
}

task::Task<Result<void>> NbdServer::expect_other_writers(std::string_view name) {
  SharedExport* const shared = find(name);
  if (shared == nullptr) co_return fail(Errc::kNotFound, "no export of that name");
  co_await shared->expect_other_writers(env_);
  co_return Result<void>{};
}

Result<uint64_t> NbdServer::size(std::string_view name) {
  const Result<Export*> here = on(env_).exports().find(name);
  if (!here) return fail(here.error());
  return (*here)->drive().geometry().bytes();
}

task::Task<void> NbdServer::stop_accepting() {
  if (stop_.requested()) co_return;
  stop_.request();
  co_await accepting_.close();
  listeners_.clear();
}

task::Task<void> NbdServer::drain(Time until) {
  co_await stop_accepting();
  std::vector<task::Task<void>> calls;
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    calls.push_back(env::call_on(
        env_, CoreId(i), [this, until](env::Env& there) { return on(there).drain(until); }));
  }
  co_await task::when_all(std::move(calls));
}

task::Task<void> NbdServer::close() {
  co_await stop_accepting();
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    co_await env::call_on(env_, CoreId(i), [this](env::Env& there) { on(there).stop(); });
  }
  co_await gate_.close();
  co_await reception_.close();
  for (uint32_t i = 0; i < env_.core_count(); ++i) {
    co_await env::call_on(env_, CoreId(i),
                          [this](env::Env& there) { return on(there).exports().close(); });
    co_await env::call_on(env_, CoreId(i), [this, i](env::Env&) { cores_[i].reset(); });
  }
}

}  // namespace cairn::door::nbd
