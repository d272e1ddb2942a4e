// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "server/open/open_stack.h"
#include "server/open/stack_toml.h"
#include "testing/stack/files.h"
#include "world/sim/cluster.h"

namespace cairn::server {
namespace {

std::string line_of(std::string_view toml) {
  const Attempt<drive::Stack> stack = parse_stack_toml(toml, "s.toml");
  return stack ? stack->text() : stack.error().text;
}

TEST(StackToml, IsTheSameAsTheLine) {
  EXPECT_EQ(line_of("service = 'stripe'\nchunk = '64K'\nbelow = ['file:/a,size=1G', "
                    "'limit(file:/b, iops=5)']\n"),
            "stripe(file:/a,size=1G, limit(file:/b, iops=5), chunk=64K)");
  EXPECT_EQ(line_of("service = 'mirror'\ndegraded = true\n[[below]]\nservice = 'limit'\niops = 7\n"
                    "below = ['mem:size=1G']\n[[below]]\nservice = 'slice'\nbelow = ['file:/b']\n"),
            "mirror(limit(mem:size=1G, iops=7), slice(file:/b), degraded=yes)");
}

TEST(StackToml, ReadsWhatItPrints) {
  for (const char* line :
       {"mirror(limit(mem:size=1G, iops=7), nvme-tcp://a/b, degraded=yes)",
        "slice(\"file:/a \\\"b\\\" (c)\", offset=4096)", "stripe(file:/a, file:/b, chunk=64K)"}) {
    const auto stack = drive::Stack::parse(line);
    ASSERT_TRUE(stack) << line;
    EXPECT_EQ(line_of(stack_toml(*stack)), line);
  }
}

TEST(StackToml, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"service = ", "s.toml:1:"},
      {"below = ['mem:size=1G']", "write service = \"mirror\""},
      {"service = 'frob'\nbelow = []", "s.toml:1:11: this is no service"},
      {"service = 'limit'\nbelow = 'mem:'", "s.toml:2:9: below is a list"},
      {"service = 'limit'\nbelow = [3]", "s.toml:2:10: this is an integer"},
      {"service = 'limit'\nbelow = ['limit(']", "a drive is missing here"},
      {"service = 'limit'\niops = [1]\nbelow = []", "iops is a text, a whole number"},
      {"service = 'limit'\nbelow = []", "a drive is missing here"},
      {"service = 'limit'\nsize = 3\nbelow = ['nvme-tcp://a/b']", "size is an option of mem:"},
      {"service = 'limit'\n'a b' = 3\nbelow = ['mem:size=1G']", "s.toml:\n"},
  };
  for (const auto& [toml, message] : cases) {
    EXPECT_NE(line_of(toml).find(message), std::string::npos) << toml << "\n" << line_of(toml);
  }
}

task::Task<void> open_and_write(env::Env& env, StackPlan& plan, std::string& failed) {
  Attempt<std::unique_ptr<drive::Drive>> drive = co_await plan.open(env);
  if (!drive) {
    failed = drive.error().text;
    plan.close();
    co_return;
  }
  const std::vector<std::byte> block(4096, std::byte{1});
  const Result<void> written = co_await (*drive)->write(Lba(0), block);
  EXPECT_TRUE(written);
  co_await (*drive)->close();
  drive->reset();
  plan.close();
}

std::string open_in_sim(std::string_view text) {
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(text);
  if (!plan) return plan.error().text;
  std::string failed;
  sim::Cluster cluster;
  sim::Node& node = cluster.node("host");
  node.start([&](env::Env& env) { return open_and_write(env, **plan, failed); });
  EXPECT_TRUE(cluster.run_until([&] { return !node.is_running(); }, 1000_s));
  return failed;
}

TEST(StackPlan, LayersShareADriveByItsChannels) {
  const std::string leaf = "flash:profile=laptop-tlc,file=/d0,size=64M";
  const auto both = [&](int second) {
    return "mirror(channels(" + leaf + ", first=0, count=2), channels(" + leaf +
           ", first=" + std::to_string(second) + ", count=2))";
  };
  EXPECT_EQ(open_in_sim(both(2)), "");
  const std::string said = open_in_sim(both(1));
  EXPECT_NE(said.find("another has some of these channels"), std::string::npos) << said;
}

TEST(StackPlan, OpensALineOfText) {
  EXPECT_EQ(open_in_sim("limit(stripe(mem:size=1M, file:/d0,size=1M), iops=100)"), "");
}

// A file in a folder of the test's own, gone at its end.
class KeyFile {
 public:
  explicit KeyFile(std::string_view text, mode_t mode = 0600) {
    const int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    EXPECT_EQ(::fchmod(fd, mode), 0);
    ::close(fd);
  }
  ~KeyFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = ::testing::TempDir() + "key_XXXXXX";
};

TEST(StackPlan, HandsKeyFilesToServices) {
  const KeyFile key(drive::testing_key(1) + "\n");
  EXPECT_EQ(open_in_sim("encrypt(mem:size=1M, key=" + key.path() + ")"), "");
}

TEST(StackPlan, SaysWhatIsWrongWithAKeyFile) {
  const KeyFile open_to_all(drive::testing_key(1), 0644);
  const KeyFile empty("");
  const KeyFile other("abc");
  const std::pair<std::string, const char*> cases[] = {
      {open_to_all.path(), "mode 0644"},
      {empty.path(), "it is empty; 'cairn key new drive --output FILE' makes one"},
      {other.path(), "64 bytes in base64"},
      {"/nowhere/key", "No such file"},
  };
  for (const auto& [path, message] : cases) {
    const std::string said = open_in_sim("encrypt(mem:size=1M, key=" + path + ")");
    EXPECT_NE(said.find(message), std::string::npos) << said;
    EXPECT_NE(said.find("^ "), std::string::npos) << said;
  }
}

TEST(StackPlan, SaysWhichPartIsWrong) {
  EXPECT_EQ(open_in_sim("limit(mem:size=1M, iops=x)"),
            "limit(mem:size=1M, iops=x)\n                   ^ iops 'x' is not a whole number");
  EXPECT_NE(open_in_sim("limit(mem:size=1X, iops=1)").find("\n      ^ size '1X'"),
            std::string::npos);
  EXPECT_NE(open_in_sim("limit(nvme-tcp://127.0.0.1:1, iops=1)").find("\n      ^ "),
            std::string::npos);
  EXPECT_EQ(open_in_sim("limit(http://127.0.0.1/v?size=1X, iops=1)"),
            "limit(http://127.0.0.1/v?size=1X, io ...\n      ^ 'http://127.0.0.1/v?size=1X' is no "
            "place: 'size=1X' is wrong: size is a number, 512 to 9223372036854775807; write "
            "http://HOST:PORT/PATH?size=1G");
  EXPECT_NE(open_in_sim("limit(http://127.0.0.1:1/v?size=1M&retries=0, iops=1)")
                .find("\n      ^ http://127.0.0.1:1/v: "),
            std::string::npos);
  EXPECT_NE(open_in_sim("slice(mem:size=1M, offset=2M)").find("past the end"), std::string::npos);
  EXPECT_NE(open_in_sim("limit(nvme-tcp://127.0.0.1:4420/nqn.x:y?connect_timeout=1s, iops=1)")
                .find("\n      ^ "),
            std::string::npos);
}

}  // namespace
}  // namespace cairn::server
