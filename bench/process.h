// SPDX-License-Identifier: Apache-2.0
// Contestants in processes of their own, as users run them: forked, pinned, and waited for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace cairn::bench {

// The calling thread, from now on; a negative CPU leaves it where it is.
Result<void> pin_to(int cpu);
// Runs `work` to its end in a thread pinned to `cpu`.
Result<void> on_cpu(int cpu, const std::function<Result<void>()>& work);

// Zeroed memory that a fork shares.
class SharedMemory {
 public:
  static Result<SharedMemory> make(size_t size);
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  SharedMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  size_t size_;
};

// A child process. Started while no other thread runs here; ends with us when we die.
class Process {
 public:
  // `body` runs in the child, which then exits; what it returns reaches wait().
  static Result<Process> start(const std::function<Result<void>()>& body);
  // Another program, pinned; `words` begins with its path or its name. What it prints goes to the
  // file `output`, made new, or to nobody; its complaints go to nobody.
  static Result<Process> start_program(const std::vector<std::string>& args, int cpu,
                                       const std::string& output = "/dev/null");
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  // False once it has ended by itself.
  bool is_running() const;
  // Asks it to end, as a terminal would.
  void terminate() const;
  // Takes its CPU away, and gives it back.
  void pause() const;
  void resume() const;
  // CPU time it has used so far.
  Duration cpu_time() const;
  // Waits for its end and gives the CPU time it used. kIo: it failed.
  Result<Duration> wait();

 private:
  explicit Process(pid_t pid) : pid_(pid) {}
  void send(int signal) const;
  pid_t pid_;
};

}  // namespace cairn::bench
