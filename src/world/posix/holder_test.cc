// SPDX-License-Identifier: Apache-2.0
#include "world/posix/holder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "env/address.h"
#include "world/posix/fd.h"
#include "world/posix/socket.h"

namespace cairn::posix {
namespace {

// A folder for one test.
class Holders : public testing::Test {
 protected:
  Holders() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~Holders() override {
    ::unlink(path("lock").c_str());
    ::unlink(path("socket").c_str());
    ::rmdir(folder_.c_str());
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  Fd open_lock() const { return Fd(::open(path("lock").c_str(), O_RDWR | O_CREAT, 0600)); }

 private:
  std::string folder_ = "/tmp/cairn_holder_XXXXXX";
};

TEST_F(Holders, AFileThatAnotherHasLockedIsRefused) {
  const Fd first = open_lock();
  const Fd second = open_lock();
  EXPECT_TRUE(lock_alone(first.get(), 0_s));
  EXPECT_FALSE(lock_alone(second.get(), 0_s));
}

TEST_F(Holders, ALockThatIsGivenBackInTimeIsTaken) {
  Fd first = open_lock();
  const Fd second = open_lock();
  EXPECT_TRUE(lock_alone(first.get(), 0_s));
  bool is_locked = false;
  std::thread waiting([&] { is_locked = lock_alone(second.get(), 60_s); });
  EXPECT_EQ(::flock(first.get(), LOCK_UN), 0);
  waiting.join();
  EXPECT_TRUE(is_locked);
}

TEST_F(Holders, WhoListensIsTold) {
  EXPECT_FALSE(listening_process(path("socket")).has_value());
  const env::Address at{.family = env::Address::Family::kLocal, .path = path("socket")};
  {
    const Result<Fd> listener = make_listener(at, {});
    ASSERT_TRUE(listener.has_value());
    EXPECT_EQ(listening_process(path("socket")), ::getpid());
  }
  EXPECT_FALSE(listening_process(path("socket")).has_value()) << "nobody any more";
}

}  // namespace
}  // namespace cairn::posix
