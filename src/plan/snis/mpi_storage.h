// SPDX-License-Identifier: Apache-2.0
// The storage phase spread over machines by MPI: each process simulates its part of the targets.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/problem.h"
#include "snis/phases.h"

namespace cairn::plan {

// This process among those that mpirun started. One at a time.
class Mpi {
 public:
  // Refuses where Cairn was built without MPI.
  static Attempt<std::unique_ptr<Mpi>> start();
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // The numbers of rank 0 to all. All call it, with as many.
  void spread(std::span<int64_t> numbers);
  // The smallest of each place to rank 0. All call it, with as many.
  void gather_min(std::span<int64_t> numbers);

 private:
  Mpi() = default;
  int rank_ = 0;
  int size_ = 1;
};

// Rank 0 runs the iterations and calls run(); the others serve() until rank 0's storage is gone.
// All have loaded the same requests.
class MpiStorage final : public snis::Storage {
 public:
  // All outlive it.
  MpiStorage(Mpi& mpi, const snis::LocalStorage& local, uint32_t targets, size_t requests,
             snis::Share share);
  ~MpiStorage() override;

  std::vector<snis::Nanos> run(std::span<const snis::Nanos> arrivals) override;
  void serve();

 private:
  std::vector<snis::Nanos> run_own_targets(std::span<const snis::Nanos> arrivals) const;

  Mpi& mpi_;
  const snis::LocalStorage& local_;
  uint32_t targets_;
  size_t requests_;
  snis::Share share_;
};

}  // namespace cairn::plan
