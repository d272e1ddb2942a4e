// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/mpi_storage.h"

#ifdef CAIRN_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace cairn::plan {

namespace {
// What rank 0 tells the others first.
constexpr int64_t kStop = 0;
constexpr int64_t kPhase = 1;
}  // namespace

#ifdef CAIRN_MPI

Attempt<std::unique_ptr<Mpi>> Mpi::start() {
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) {
    return refuse("MPI does not start: run this below mpirun, or without --mpi");
  }
  std::unique_ptr<Mpi> mpi(new Mpi);
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi->size_);
  return mpi;
}
Mpi::~Mpi() { MPI_Finalize(); }

void Mpi::spread(std::span<int64_t> numbers) {
  MPI_Bcast(numbers.data(), static_cast<int>(numbers.size()), MPI_INT64_T, 0, MPI_COMM_WORLD);
}

void Mpi::gather_min(std::span<int64_t> numbers) {
  void* const here = numbers.data();
  const auto count = static_cast<int>(numbers.size());
  if (rank_ == 0) {
    MPI_Reduce(MPI_IN_PLACE, here, count, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
  } else {
    MPI_Reduce(here, nullptr, count, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
  }
}

#else

Attempt<std::unique_ptr<Mpi>> Mpi::start() {
  return refuse(
      "this cairn was built without MPI: install libopenmpi-dev and build again, or leave out "
      "--mpi");
}
Mpi::~Mpi() = default;
void Mpi::spread(std::span<int64_t>) {}
void Mpi::gather_min(std::span<int64_t>) {}

#endif

MpiStorage::MpiStorage(Mpi& mpi, const snis::LocalStorage& local, uint32_t targets, size_t requests,
                       snis::Share share)
    : mpi_(mpi), local_(local), targets_(targets), requests_(requests), share_(std::move(share)) {}

MpiStorage::~MpiStorage() {
  if (mpi_.rank() != 0) return;
  int64_t order = kStop;
  mpi_.spread({&order, 1});
}

std::vector<snis::Nanos> MpiStorage::run(std::span<const snis::Nanos> arrivals) {
  int64_t order = kPhase;
  mpi_.spread({&order, 1});
  std::vector<snis::Nanos> copy(arrivals.begin(), arrivals.end());
  mpi_.spread(copy);
  std::vector<snis::Nanos> departures = run_own_targets(arrivals);
  mpi_.gather_min(departures);
  return departures;
}

void MpiStorage::serve() {
  for (;;) {
    int64_t order = kStop;
    mpi_.spread({&order, 1});
    if (order == kStop) return;
    std::vector<snis::Nanos> arrivals(requests_);
    mpi_.spread(arrivals);
    std::vector<snis::Nanos> departures = run_own_targets(arrivals);
    mpi_.gather_min(departures);
  }
}

// kNever, which is larger than every time, where the target is somebody else's.
std::vector<snis::Nanos> MpiStorage::run_own_targets(std::span<const snis::Nanos> arrivals) const {
  std::vector<snis::Nanos> departures(requests_, snis::kNever);
  const auto size = static_cast<uint32_t>(mpi_.size());
  const auto rank = static_cast<uint32_t>(mpi_.rank());
  const uint32_t own = targets_ / size + (rank < targets_ % size ? 1 : 0);
  share_(own, [&](size_t i) {
    local_.run_target(rank + static_cast<uint32_t>(i) * size, arrivals, departures);
  });
  return departures;
}

}  // namespace cairn::plan
