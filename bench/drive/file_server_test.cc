// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/file_server.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/drive/server_process.h"

namespace cairn::bench {
namespace {

const FileService kService{
    .program = "/bin/cairn", .file = "/d/file", .socket = "/d/socket", .direct = true, .cpu = 3};

bool has_word(const std::vector<std::string>& args, std::string_view word) {
  return std::ranges::find(args, word) != args.end();
}

TEST(NbdServer, BothServeTheSameFileAtTheSameSocket) {
  const std::vector<std::string> ours = nbd_command(FileServer::kCairn, kService);
  EXPECT_EQ(ours, (std::vector<std::string>{"/bin/cairn", "serve", "d0=file:/d/file,direct=on",
                                            "--nbd", "unix:/d/socket", "--cores", "3"}));
  const std::vector<std::string> theirs = nbd_command(FileServer::kQemuThreads, kService);
  EXPECT_TRUE(
      has_word(theirs, "driver=file,node-name=file0,filename=/d/file,aio=threads,cache.direct=on"));
  EXPECT_TRUE(has_word(theirs, "addr.type=unix,addr.path=/d/socket,max-connections=64"));
}

TEST(NbdServer, OneThatEndsBeforeItServesIsAnError) {
  const auto started = ServerProcess::start({"false"}, "/nowhere/socket", -1);
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error(), Errc::kIo);
}

TEST(NbdServer, ProgramsAreFoundByName) {
  EXPECT_TRUE(has_program("sh"));
  EXPECT_FALSE(has_program("no-such-program-of-anybody"));
}

TEST(Process, SaysWhetherItRuns) {
  Result<Process> process = Process::start_program({"sleep", "1000"}, -1);
  ASSERT_TRUE(process.has_value());
  EXPECT_TRUE(process->is_running());
  process->terminate();
  EXPECT_FALSE(process->wait().has_value()) << "it was ended by a signal";
  EXPECT_FALSE(process->is_running());
  process->terminate();  // reaches nobody
}

}  // namespace
}  // namespace cairn::bench
