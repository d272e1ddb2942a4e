// SPDX-License-Identifier: Apache-2.0
#include "loadgen/load_jobs.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "env/call.h"

namespace cairn::loadgen {

namespace {

// Used on its own core from opening to closing.
struct Job {
  uint32_t index = 0;
  std::unique_ptr<drive::Drive> drive;
  std::optional<Error> error;
  LoadResult result;
};

class LoadParty {
 public:
  LoadParty(env::Env& env, const DriveLoad& load, const LoadJobs& jobs)
      : env_(env), load_(load), jobs_(jobs), all_(jobs.jobs) {
    for (uint32_t i = 0; i < jobs.jobs; ++i) all_[i].index = i;
  }

  task::Task<Result<LoadResult>> run() {
    co_await each(&LoadParty::open);
    if (!failed()) co_await each(&LoadParty::work);
    co_await each(&LoadParty::close);
    if (const Error* error = failed()) co_return fail(*error);
    LoadResult sum = std::move(all_.front().result);
    for (size_t i = 1; i < all_.size(); ++i) sum.add(all_[i].result);
    co_return sum;
  }

 private:
  using Step = task::Task<void> (LoadParty::*)(env::Env& there, Job& job);

  // One step of every job at once, each on its core.
  task::Task<void> each(Step step) {
    std::vector<task::Task<void>> steps;
    for (Job& job : all_) {
      const CoreId core(job.index % env_.core_count());
      steps.push_back(env::call_on(
          env_, core, [this, step, &job](env::Env& there) { return (this->*step)(there, job); }));
    }
    for (task::Task<void>& each : steps) co_await each;
  }
  const Error* failed() const {
    for (const Job& job : all_) {
      if (job.error) return &*job.error;
    }
    return nullptr;
  }

  task::Task<void> open(env::Env& there, Job& job) {
    Result<std::unique_ptr<drive::Drive>> drive = co_await jobs_.open(there);
    if (drive) {
      job.drive = std::move(*drive);
    } else {
      job.error = drive.error();
    }
  }
  task::Task<void> work(env::Env& there, Job& job) {
    const DriveLoad part = part_of(job);
    LoadWatch watch;
    if (job.index == 0) watch = jobs_.watch;
    if (jobs_.look) {
      watch.ended = [this, &job, ended = std::move(watch.ended)] {
        if (ended) ended();
        jobs_.look(job.index, *job.drive);
      };
    }
    Result<LoadResult> result =
        co_await run_load(there, *job.drive, part, there.stop_token(), std::move(watch));
    if (result) {
      job.result = std::move(*result);
    } else {
      job.error = result.error();
    }
  }
  task::Task<void> close(env::Env&, Job& job) {
    if (job.drive) co_await job.drive->close();
    job.drive.reset();
  }

  DriveLoad part_of(const Job& job) const {
    DriveLoad part = load_;
    part.seed = mix64(load_.seed + job.index);
    part.rate = load_.rate / jobs_.jobs;
    if (load_.order == DriveLoad::Order::kRandom || load_.request_size == 0) return part;
    const uint64_t size = job.drive->geometry().bytes();
    if (load_.offset >= size) return part;  // which check_load refuses
    const uint64_t length = load_.length != 0 ? load_.length : size - load_.offset;
    part.length = align_down(length / jobs_.jobs, load_.request_size);
    part.offset += part.length * job.index;
    if (part.length == 0) part.length = 1;  // too little for all: refused, not taken as "the rest"
    return part;
  }

  env::Env& env_;
  const DriveLoad& load_;
  const LoadJobs& jobs_;
  std::vector<Job> all_;
};

}  // namespace

task::Task<Result<LoadResult>> run_load_jobs(env::Env& env, const DriveLoad& load,
                                             const LoadJobs& jobs) {
  if (jobs.jobs == 0) co_return fail(Errc::kInvalid, "a load needs a job");
  LoadParty party(env, load, jobs);
  Result<LoadResult> result = co_await party.run();
  co_return result;
}

}  // namespace cairn::loadgen
