// A small test framework: TEST(name) { CHECK(...); } in any file of tests/cpp.
#pragma once

#include <cmath>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace testing {

struct Test {
  std::string name;
  std::function<void()> body;
};

inline std::vector<Test>& all() {
  static std::vector<Test> tests;
  return tests;
}

inline int& failures() {
  static int count = 0;
  return count;
}

struct Register {
  Register(const char* name, std::function<void()> body) {
    all().push_back({name, std::move(body)});
  }
};

inline void report(const char* file, int line, const std::string& what) {
  ++failures();
  std::cerr << file << ":" << line << ": " << what << "\n";
}

}  // namespace testing

#define TEST(name)                                                    \
  static void test_##name();                                          \
  static const testing::Register register_##name(#name, test_##name); \
  static void test_##name()

#define CHECK(...)                                                           \
  do {                                                                       \
    if (!(__VA_ARGS__)) {                                                    \
      testing::report(__FILE__, __LINE__, "CHECK(" #__VA_ARGS__ ") failed"); \
    }                                                                        \
  } while (false)

#define CHECK_NEAR(a, b, tolerance)                     \
  do {                                                  \
    const double x_ = (a), y_ = (b);                    \
    if (!(std::abs(x_ - y_) <= (tolerance))) {          \
      std::ostringstream text_;                         \
      text_ << #a " = " << x_ << ", " #b " = " << y_;   \
      testing::report(__FILE__, __LINE__, text_.str()); \
    }                                                   \
  } while (false)
