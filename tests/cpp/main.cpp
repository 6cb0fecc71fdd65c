#include <exception>

#include "testing.h"

int main() {
  int failed = 0;
  for (const testing::Test& test : testing::all()) {
    const int before = testing::failures();
    try {
      test.body();
    } catch (const std::exception& error) {
      testing::report(test.name.c_str(), 0, std::string("unexpected exception: ") + error.what());
    }
    if (testing::failures() > before) {
      ++failed;
      std::cerr << "FAILED " << test.name << "\n";
    }
  }
  std::cout << testing::all().size() - static_cast<std::size_t>(failed) << " passed, " << failed
            << " failed\n";
  return failed == 0 ? 0 : 1;
}
