// SPDX-License-Identifier: Apache-2.0
#include "service/common/service_drive.h"

#include <gtest/gtest.h>

#include <string>

#include "service/common/service.h"
#include "testing/stack/files.h"
#include "testing/stack/stacks.h"

namespace cairn::drive {
namespace {

task::Task<void> ask_for_nothing(env::Env& env, std::string stack) {
  LeavesWithFiles leaves({{"drive.key", testing_key(1)}});
  auto drive = co_await must_open(env, stack, leaves);
  CO_ASSERT_TRUE(drive != nullptr);
  for (const auto kind :
       {Request::Kind::kRead, Request::Kind::kWrite, Request::Kind::kCompare,
        Request::Kind::kCompareAndWrite, Request::Kind::kDiscard, Request::Kind::kWriteZeroes}) {
    for (const uint64_t lba : {uint64_t{0}, drive->geometry().blocks}) {
      const Request request{.kind = kind, .lba = Lba(lba), .blocks = 0};
      const Result<void> done = co_await drive->submit(request, {});
      EXPECT_TRUE(done) << stack << " " << static_cast<int>(kind) << ": " << done.error().text();
    }
  }
  co_await drive->close();
}

TEST(EveryService, DoesNothingWhenNoBlocksAreNamed) {
  for (const Service* service : services()) {
    int files = 0;
    const std::string stack = example_over(
        *service, [&] { return testing_leaf(*service, "d" + std::to_string(files++)); });
    run_in_sim([stack](env::Env& env) { return ask_for_nothing(env, stack); });
  }
}

}  // namespace
}  // namespace cairn::drive
