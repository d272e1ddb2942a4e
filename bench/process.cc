// SPDX-License-Identifier: Apache-2.0
#include "bench/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

namespace cairn::bench {

namespace {

Duration duration_of(const timeval& time) {
  return Duration{time.tv_sec * 1'000'000'000 + time.tv_usec * 1'000};
}

}  // namespace

Result<void> pin_to(int cpu) {
  if (cpu < 0) return {};
  if (cpu >= CPU_SETSIZE) return fail(Errc::kInvalid, "no such CPU", cpu);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  const int err = ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
  if (err != 0) return fail(Error::from_errno(err, "pin a thread to a CPU"));
  return {};
}

Result<void> on_cpu(int cpu, const std::function<Result<void>()>& work) {
  Result<void> result;
  {
    const std::jthread thread([&] {
      result = pin_to(cpu);
      if (result) result = work();
    });
  }
  return result;
}

Result<SharedMemory> SharedMemory::make(size_t size) {
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return fail(Error::from_errno(errno, "map memory"));
  return SharedMemory(static_cast<std::byte*>(mapped), size);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<Process> Process::start(const std::function<Result<void>()>& body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(Error::from_errno(errno, "start a process"));
  if (pid > 0) return Process(pid);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const Result<void> result = body();
  if (!result) fmt::print(stderr, "cairn: a process of the benchmark: {}\n", result.error().text());
  ::_exit(result ? 0 : 1);
}

Result<Process> Process::start_program(const std::vector<std::string>& args, int cpu,
                                       const std::string& output) {
  return start([&]() -> Result<void> {
    if (const Result<void> pinned = pin_to(cpu); !pinned) return pinned;
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0) return fail(Error::from_errno(errno, "open /dev/null"));
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0) return fail(Error::from_errno(errno, "open a file for what a program prints"));
    for (const int fd : {STDIN_FILENO, STDERR_FILENO}) ::dup2(nowhere, fd);
    ::dup2(out, STDOUT_FILENO);
    std::vector<char*> argv;
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    return fail(Error::from_errno(errno, "start a program"));
  });
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

bool Process::is_running() const {
  if (pid_ <= 0) return false;
  siginfo_t state{};
  const int looked = ::waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
  return looked == 0 && state.si_pid == 0;
}

// To nobody when the process was waited for or moved away: kill(-1) would reach everybody.
void Process::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}
void Process::terminate() const { send(SIGTERM); }
void Process::pause() const { send(SIGSTOP); }
void Process::resume() const { send(SIGCONT); }

Duration Process::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) == 0) ::clock_gettime(clock, &time);
  return Duration{time.tv_sec * 1'000'000'000 + time.tv_nsec};
}

Result<Duration> Process::wait() {
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  rusage used{};
  while (::wait4(pid, &status, 0, &used) < 0) {
    if (errno != EINTR) return fail(Error::from_errno(errno, "wait for a process"));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Errc::kIo, "a process of the benchmark failed", status);
  }
  return duration_of(used.ru_utime) + duration_of(used.ru_stime);
}

}  // namespace cairn::bench
