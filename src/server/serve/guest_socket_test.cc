// SPDX-License-Identifier: Apache-2.0
#include "server/serve/guest_socket.h"

#include <gtest/gtest.h>

namespace cairn::server {
namespace {

using door::Waiting;

std::vector<std::string> drives(std::initializer_list<const char*> names) {
  return {names.begin(), names.end()};
}

std::string assigned(std::initializer_list<const char*> texts,
                     std::initializer_list<const char*> names) {
  std::vector<GuestSocket> sockets;
  for (const char* text : texts) sockets.push_back(parse_guest_socket(text).value());
  const Attempt<void> done = assign_sockets(sockets, drives(names));
  return done ? sockets.back().drive : done.error().text;
}

TEST(GuestSocket, IsAPathWithANameBeforeAndAModeBehind) {
  const GuestSocket plain = parse_guest_socket("/run/a.sock").value();
  EXPECT_EQ(plain.drive, "");
  EXPECT_EQ(plain.at.path, "/run/a.sock");
  EXPECT_EQ(plain.waiting, Waiting::kAdaptive);
  const GuestSocket full = parse_guest_socket("d0=unix:/run/a=b,mode=polling").value();
  EXPECT_EQ(full.drive, "d0");
  EXPECT_EQ(full.at.path, "/run/a=b");
  EXPECT_EQ(full.waiting, Waiting::kPolling);
  EXPECT_EQ(parse_guest_socket("/x/y=z").value().at.path, "/x/y=z");
  EXPECT_FALSE(parse_guest_socket("").has_value());
  EXPECT_FALSE(parse_guest_socket("d0=").has_value());
  EXPECT_FALSE(parse_guest_socket("/a,mode=never").has_value());
  EXPECT_FALSE(parse_guest_socket("/" + std::string(200, 'x')).has_value());
}

TEST(GuestSocket, BelongsToOneDrive) {
  EXPECT_EQ(assigned({"/a"}, {"d0"}), "d0");
  EXPECT_EQ(assigned({"d0=/a", "d1=/b"}, {"d0", "d1"}), "d1");
  EXPECT_EQ(
      assigned({"/a"}, {"d0", "d1"}),
      "2 drives are served: say whose socket '/a' is, as NAME=/a (d0, d1), or give each its own "
      "by a % in the path");
  EXPECT_EQ(assigned({"d7=/a"}, {"d0"}),
            "no drive 'd7' is served; did you mean 'd0'? (there are d0)");
  EXPECT_EQ(assigned({"d0=/a", "d0=/b"}, {"d0"}),
            "drive 'd0' has a socket already: a virtual machine uses it alone");
  EXPECT_EQ(assigned({"d0=/a", "d1=/a"}, {"d0", "d1"}),
            "two drives have the socket '/a': give each its own");
}

TEST(GuestSocket, WithAPercentIsOneForEachDrive) {
  std::vector<GuestSocket> sockets = {parse_guest_socket("/run/%.sock,mode=polling").value()};
  ASSERT_TRUE(assign_sockets(sockets, drives({"d0", "d1"})).has_value());
  ASSERT_EQ(sockets.size(), 2u);
  EXPECT_EQ(sockets[1].drive, "d1");
  EXPECT_EQ(sockets[1].at.path, "/run/d1.sock");
  EXPECT_EQ(sockets[1].waiting, Waiting::kPolling);
  EXPECT_EQ(assigned({"/run/%", "d1=/b"}, {"d0", "d1"}),
            "drive 'd1' has a socket already: a virtual machine uses it alone");
  EXPECT_EQ(assigned({"d0=/run/%"}, {"d0"}), "d0");
}

TEST(QemuArgs, AreWhatQemuTakes) {
  EXPECT_EQ(qemu_args({.drive = "my disk", .socket = "/run/a,b", .queues = 2, .boot = true}),
            "-object memory-backend-memfd,id=cairn-memory,size=2G,share=on -m 2G "
            "-machine memory-backend=cairn-memory "
            "-chardev socket,id=cairn-my_disk,path=/run/a,,b,reconnect=1 "
            "-device vhost-user-blk-pci,chardev=cairn-my_disk,num-queues=2,bootindex=0\n");
  EXPECT_EQ(qemu_args({.drive = "d0", .socket = "/run/a", .vfio = true, .memory = "1G"}),
            "-object memory-backend-memfd,id=cairn-memory,size=1G,share=on -m 1G "
            "-machine memory-backend=cairn-memory -device "
            "{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"/run/a\"}}\n");
}

}  // namespace
}  // namespace cairn::server
