// SPDX-License-Identifier: Apache-2.0
#include "fabric/target/target.h"

#include <utility>

#include "env/call.h"
#include "task/deadline.h"

namespace cairn::fabric {

// What one core has of a target: its connections. Made and destroyed on that core.
class Target::PerCore {
 public:
  PerCore(env::Env& env, nvme::Registry& registry, CoreId control, const TargetOptions& options)
      : in_capsule_pool_(
            {.classes = {{4096, kInCapsuleBuffers}, {kInCapsuleMax, kInCapsuleBuffersLarge}}}),
        in_capsule_(env, in_capsule_pool_),
        buffers_(env, env.buffers()),
        core_{env, registry, control, options, buffers_, in_capsule_} {}

  // The life of one connection.
  task::Task<void> serve(env::Connection connection) {
    if (stopping_) co_return;
    TargetConnection served(core_, core_.env.open(std::move(connection)));
    Member member(served);
    members_.push_back(member);
    co_await served.run();
  }
  void stop() {
    stopping_ = true;
    members_.for_each([](Member& member) { member.connection.stop("the target is closing"); });
  }

 private:
  struct Member : ListHook<> {
    explicit Member(TargetConnection& its) : connection(its) {}
    TargetConnection& connection;
  };
  BufferPool in_capsule_pool_;
  BufferQueue in_capsule_;
  BufferQueue buffers_;
  TargetCore core_;
  List<Member> members_;
  bool stopping_ = false;
};

Target::Target(env::Env& env, nvme::Registry& registry, const TargetOptions& options)
    : env_(env), registry_(registry), options_(options), cores_(env.core_count()) {}

Target::~Target() = default;

Result<env::Address> Target::listen(const env::Address& at) {
  Result<std::unique_ptr<env::Listener>> listener = env_.listen(at, {});
  if (!listener) return fail(listener.error());
  listeners_.push_back(std::move(*listener));
  gate_.spawn(accept_loop(*listeners_.back()));
  return listeners_.back()->local();
}

task::Task<void> Target::accept_loop(env::Listener& listener) {
  while (!stop_.requested()) {
    Result<env::Connection> connection = co_await listener.accept(stop_.token());
    if (connection) {
      if (connections_ >= options_.connections_max) continue;  // dropped, which its host sees
      gate_.spawn(serve(std::move(*connection)));
    } else if (connection.error() == Errc::kLimit) {
      // Out of descriptors: connections wait in the backlog until some are free.
      const Result<void> slept = co_await task::sleep_for(env_, 50_ms, stop_.token());
      if (!slept) co_return;
    } else {
      co_return;
    }
  }
}

task::Task<void> Target::serve(env::Connection connection) {
  const uint32_t core = next_core_++ % env_.core_count();
  ++connections_;
  co_await env::call_on(env_, CoreId(core), [&](env::Env& there) {
    std::unique_ptr<PerCore>& mine = cores_[core];
    if (mine == nullptr) {
      mine = std::make_unique<PerCore>(there, registry_, env_.core(), options_);
    }
    return mine->serve(std::move(connection));
  });
  --connections_;
}

task::Task<void> Target::close() {
  stop_.request();
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    co_await env::call_on(env_, CoreId(core), [&](env::Env&) {
      if (cores_[core] != nullptr) cores_[core]->stop();
    });
  }
  co_await gate_.close();
  for (uint32_t core = 0; core < env_.core_count(); ++core) {
    co_await env::call_on(env_, CoreId(core), [&](env::Env&) { cores_[core].reset(); });
  }
  listeners_.clear();
}

}  // namespace cairn::fabric
