#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include "spinney/common/log.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/common/watch.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::common;

TEST(log_agrees_with_the_standard_library_within_two_ulps) {
  Stream stream(1, Purpose::rows, 0);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        std::ldexp(0.5 + stream.uniform(), static_cast<int>(stream.below(2000)) - 1000);
    const double expected = std::log(x);
    const double tolerance = 4e-16 * std::max(std::abs(expected), 1e-3);
    CHECK_NEAR(common::log(x), expected, tolerance);
  }
  CHECK(common::log(1.0) == 0.0);
  CHECK(std::isinf(common::log(0.0)) && common::log(0.0) < 0);
  CHECK(std::isnan(common::log(-1.0)));
  CHECK_NEAR(common::log(5e-324), std::log(5e-324), 1e-12);
}

TEST(streams_depend_on_seed_purpose_and_index_only) {
  Stream a(7, Purpose::rows, 3);
  Stream b(7, Purpose::rows, 3);
  for (int i = 0; i < 100; ++i) CHECK(a.bits() == b.bits());
  std::set<std::uint64_t> first;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const Purpose purpose : {Purpose::features, Purpose::thresholds, Purpose::rows}) {
      for (std::uint64_t index = 0; index < 10; ++index) {
        first.insert(Stream(seed, purpose, index).bits());
      }
    }
  }
  CHECK(first.size() == 300);
}

TEST(below_is_uniform) {
  Stream stream(3, Purpose::features, 0);
  std::vector<int> count(7);
  constexpr int n = 70000;
  for (int i = 0; i < n; ++i) ++count[stream.below(7)];
  double chi_square = 0;
  for (const int c : count) chi_square += (c - n / 7.0) * (c - n / 7.0) / (n / 7.0);
  CHECK(chi_square < 22.5);  // 99.9 % point with six degrees of freedom
}

TEST(parallel_for_runs_every_task_once) {
  for (const int n_threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> seen(1000);
    parallel_for(seen.size(), n_threads, [&](std::size_t task, int worker) {
      CHECK(worker >= 0 && worker < n_threads);
      ++seen[task];
    });
    for (const auto& count : seen) CHECK(count == 1);
  }
}

TEST(parallel_for_rethrows_and_stays_usable) {
  for (int round = 0; round < 20; ++round) {
    bool caught = false;
    try {
      parallel_for(100, 4, [](std::size_t task, int) {
        if (task == 37) throw std::runtime_error("37");
      });
    } catch (const std::runtime_error& error) {
      caught = std::string(error.what()) == "37";
    }
    CHECK(caught);
  }
}

TEST(nested_parallel_for_runs_on_one_thread) {
  std::atomic<int> total{0};
  parallel_for(8, 3, [&](std::size_t, int) {
    parallel_for(10, 3, [&](std::size_t, int worker) {
      CHECK(worker == 0);
      ++total;
    });
  });
  CHECK(total == 80);
}

TEST(parallel_tasks_runs_tasks_that_are_added_later) {
  for (const int n_threads : {1, 2, 5}) {
    std::vector<int> n_runs(1000);  // task i becomes ready when its parent i / 2 is finished
    std::vector<int*> ready{&n_runs[1]};
    int n_finished = 0;
    parallel_tasks(
        n_threads,
        [&]() -> int* {
          if (ready.empty()) return nullptr;
          int* const task = ready.back();
          ready.pop_back();
          return task;
        },
        [](int& task) { ++task; },
        [&](int& task) {
          ++n_finished;
          const auto i = static_cast<std::size_t>(&task - n_runs.data());
          for (const std::size_t child : {2 * i, 2 * i + 1}) {
            if (child < n_runs.size()) ready.push_back(&n_runs[child]);
          }
        });
    CHECK(n_finished == 999);
    CHECK(std::count(n_runs.begin() + 1, n_runs.end(), 1) == 999);
  }
}

TEST(parallel_tasks_rethrows) {
  for (int round = 0; round < 20; ++round) {
    std::vector<int> tasks(50);
    std::size_t next = 0;
    bool caught = false;
    try {
      parallel_tasks(
          3, [&]() -> int* { return next < tasks.size() ? &tasks[next++] : nullptr; },
          [&](const int& task) {
            if (&task == &tasks[20]) throw std::runtime_error("20");
          },
          [](const int&) {});
    } catch (const std::runtime_error& error) {
      caught = std::string(error.what()) == "20";
    }
    CHECK(caught);
  }
}

TEST(small_work_uses_one_thread) {
  CHECK(worthwhile_threads(1000, 8) == 1);
  CHECK(worthwhile_threads(1e9, 8) == 8);
}

TEST(watch_stops_when_the_hook_returns_false) {
  int calls = 0;
  Watch watch([&](std::uint64_t, std::uint64_t) { return ++calls < 2; }, 10);
  bool stopped = false;
  try {
    for (int i = 0; i < 2'000'000'000 && !stopped; ++i) watch.poll(2'000'000);
  } catch (const Interrupted&) {
    stopped = true;
  }
  CHECK(stopped);
  CHECK(calls == 2);
}
