// SPDX-License-Identifier: Apache-2.0
// Worker: a thread of its own for a library whose calls block, on behalf of one core.
#pragma once

#include <condition_variable>
#include <coroutine>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/list.h"
#include "env/env.h"
#include "task/ready.h"
#include "task/task.h"
#include "world/posix/core.h"

namespace cairn::posix {

// Made, used and destroyed on that core; destroyed when no call is under way.
class Worker {
 public:
  explicit Worker(CoreEnv& core);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `function()` on the thread and returns its value here. Calls run one at a time, in the
  // order they were made. The function lives in the caller's frame; what it touches the core leaves
  // alone until it is done.
  template <class F>
  task::Task<std::invoke_result_t<F&>> run(F function) {
    Call<F> call(*this, function);
    co_await call;
    if constexpr (!std::is_void_v<std::invoke_result_t<F&>>) co_return std::move(*call.value);
  }

 private:
  // Lives at the core until it comes back as a message.
  class Job : public ListHook<>, public env::Message {
   public:
    Job() : Message(&Job::come_back) {}
    virtual void work() = 0;

   protected:
    ~Job() = default;
    task::Waiter waiter_;

   private:
    static void come_back(Message& message, env::Env&) {
      static_cast<Job&>(message).waiter_.wake();
    }
  };
  template <class F>
  class Call final : public Job {
    using Value = std::invoke_result_t<F&>;

   public:
    Call(Worker& worker, F& function) : worker_(worker), function_(function) {}
    void work() override {
      if constexpr (std::is_void_v<Value>) {
        function_();
      } else {
        value.emplace(function_());
      }
    }
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      waiter_.suspend(coroutine);
      worker_.put(*this);
    }
    void await_resume() {}
    std::conditional_t<std::is_void_v<Value>, bool, std::optional<Value>> value{};

   private:
    Worker& worker_;
    F& function_;
  };

  void put(Job& job);
  void work_on();

  CoreEnv& core_;
  std::mutex mutex_;
  std::condition_variable changed_;
  List<Job> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace cairn::posix
