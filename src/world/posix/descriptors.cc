// SPDX-License-Identifier: Apache-2.0
#include "world/posix/descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "world/posix/fd.h"

namespace cairn::posix {

namespace {

constexpr size_t kControlSize = CMSG_SPACE(kDescriptorsPerMessage * sizeof(int));

void take_fds(msghdr& message, std::vector<Fd>& fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

ReceivedFds receive_with_fds(int socket, MutableBytes into) {
  iovec piece{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<std::byte, kControlSize> control;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ReceivedFds received;
  do received.bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (received.bytes < 0 && errno == EINTR);
  if (received.bytes < 0) return received;
  take_fds(message, received.fds);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    received.fds.clear();
    received.bytes = -1;
    errno = EMFILE;
  }
  return received;
}

ssize_t send_with_fds(int socket, Bytes from, std::span<const int> fds) {
  CHECK(fds.size() <= kDescriptorsPerMessage);
  iovec piece{.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
  alignas(cmsghdr) std::array<std::byte, kControlSize> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent;
}

}  // namespace cairn::posix
