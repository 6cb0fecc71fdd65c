#include "spinney/common/system.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#if defined(_WIN32)
#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace spinney::common {

int affinity_cpus() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#elif defined(_WIN32)
  // Both masks are 0 if the process runs in several groups of processors.
  DWORD_PTR process = 0, system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) != 0 && process != 0) {
    return std::popcount(static_cast<std::uint64_t>(process));
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int quota_cpus() {
#if defined(__linux__)
  {
    std::ifstream file("/sys/fs/cgroup/cpu.max");  // version 2: "max 100000" or "200000 100000"
    std::string quota;
    double period = 0;
    if (file >> quota >> period && quota != "max" && period > 0) {
      return std::max(1, static_cast<int>(std::strtod(quota.c_str(), nullptr) / period + 0.5));
    }
  }
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");  // version 1
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double quota = -1;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) {
    return std::max(1, static_cast<int>(quota / period + 0.5));
  }
#endif
  return 0;
}

void call_after_fork([[maybe_unused]] void (*function)()) {
#if !defined(_WIN32)
  pthread_atfork(nullptr, nullptr, function);
#endif
}

}  // namespace spinney::common
