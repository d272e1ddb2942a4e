// SPDX-License-Identifier: Apache-2.0
// A drive that needs an admission which no path gets is not opened, and says why.
#include <gtest/gtest.h>

#include <memory>

#include "fabric/host/admission.h"
#include "fabric/host/host_pool.h"
#include "fabric/host/remote_drive.h"
#include "fabric/host/uri.h"
#include "fabric/serve_drive.h"
#include "task/deadline.h"
#include "world/sim/cluster.h"

namespace cairn::fabric_tests {
namespace {

using task::Task;

const std::string kNqn = "nqn.2026-11.io.cairn:admission";

class Refuses final : public fabric::Admission {
 public:
  Task<Result<void>> enter(fabric::HostSession&, fabric::NamespaceInfo,
                           task::CancelToken) override {
    co_return fail(Errc::kUnsupported, "the box cannot fence");
  }
  Task<void> leave(fabric::HostSession&, fabric::NamespaceInfo) override { co_return; }
};

Task<void> try_to_open(env::Env& env, env::Address box, bool& done) {
  const Result<void> slept = co_await task::sleep_for(env, 1_ms);
  EXPECT_TRUE(slept.has_value());
  fabric::HostOptions options;
  options.host_nqn = "nqn.2026-11.io.cairn:host";
  const fabric::Uri uri{.paths = {box}, .nqn = kNqn, .nsid = 1, .options = options};
  fabric::HostPool pool(env);
  Result<std::unique_ptr<fabric::RemoteDrive>> opened =
      co_await fabric::RemoteDrive::open(pool, uri, std::make_unique<Refuses>());
  EXPECT_FALSE(opened);
  if (opened) {
    co_await (*opened)->close();
  } else {
    EXPECT_EQ(opened.error().code(), Errc::kUnsupported);
    EXPECT_STREQ(opened.error().what(), "the box cannot fence");
  }
  done = true;
}

TEST(FabricAdmission, ADriveThatNoPathIsAdmittedToIsNotOpened) {
  bool done = false;
  sim::Cluster cluster;
  const env::Address at = cluster.node("box").address(4420);
  cluster.node("box").start(
      [at](env::Env& env) { return serve_drive(env, at, kNqn, "file:disk,size=1M"); });
  cluster.node("host").start([&, at](env::Env& env) { return try_to_open(env, at, done); });
  EXPECT_TRUE(cluster.run_until([&] { return done; }, 100_s)) << cluster.report();
  for (sim::Node* node : cluster.nodes()) node->stop();
  EXPECT_TRUE(cluster.run_until_idle(100_s));
}

}  // namespace
}  // namespace cairn::fabric_tests
