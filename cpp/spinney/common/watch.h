// Progress reports and interruption of long computations. The thread that called the core runs the
// hook; the others only read a flag. Hooks are plain functions, so the core does not need Python.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "spinney/common/check.h"

namespace spinney::common {

class Watch {
 public:
  // Called on the calling thread with the units of work done and in total; false stops the work.
  using Hook = std::function<bool(std::uint64_t, std::uint64_t)>;

  Watch() = default;
  Watch(Hook hook, std::uint64_t total)
      : hook_(std::move(hook)), total_(total), last_(Clock::now()) {}

  void advance(std::uint64_t units) {
    if (hook_) done_.fetch_add(units, std::memory_order_relaxed);
  }

  // Throws Interrupted after the hook returned false. Call it often, with the work since the last
  // call in nanoseconds; it reads the clock only once per millisecond of work.
  void poll(std::uint64_t work) {
    if (stopped_.load(std::memory_order_relaxed)) throw Interrupted();
    if (!hook_ || std::this_thread::get_id() != caller_) return;
    since_ += work;
    if (since_ < 1'000'000) return;
    since_ = 0;
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    if (!hook_(done_.load(std::memory_order_relaxed), total_)) {
      stopped_.store(true, std::memory_order_relaxed);
      throw Interrupted();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  Hook hook_;
  std::uint64_t total_ = 0;
  std::uint64_t since_ = 0;  // used by the calling thread only
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stopped_{false};
  std::thread::id caller_ = std::this_thread::get_id();
  Clock::time_point last_{};
};

}  // namespace spinney::common
