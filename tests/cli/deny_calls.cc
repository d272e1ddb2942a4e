// SPDX-License-Identifier: Apache-2.0
// deny_calls ERRNO CALL[,CALL...] PROGRAM [ARGS...]
// Runs PROGRAM under a seccomp filter in which the named system calls fail with ERRNO, as they do
// in many containers.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>  // lint: allow(it has the numbers that the filter compares with)
#include <unistd.h>       // lint: allow(it starts another program)

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr std::pair<const char*, unsigned> kCalls[] = {
    {"io_uring_setup", __NR_io_uring_setup},
    {"epoll_create1", __NR_epoll_create1},
    {"pwritev2", __NR_pwritev2},
    {"unshare", __NR_unshare},
};
constexpr std::pair<const char*, unsigned> kErrors[] = {
    {"EPERM", EPERM},
    {"ENOSYS", ENOSYS},
};

template <class Table>
unsigned number_of(const Table& table, const std::string& name) {
  for (const auto& [known, number] : table) {
    if (name == known) return number;
  }
  std::fprintf(stderr, "deny_calls: '%s' is not in its tables; add it there\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "deny_calls ERRNO CALL[,CALL...] PROGRAM [ARGS...]\n");
    return 2;
  }
  const unsigned error = number_of(kErrors, argv[1]);
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  std::istringstream calls(argv[2]);
  for (std::string call; std::getline(calls, call, ',');) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(kCalls, call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("deny_calls: install the filter");
    return 2;
  }
  ::execv(argv[3], argv + 3);
  std::perror("deny_calls: start the program");
  return 2;
}
