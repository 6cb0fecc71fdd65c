#include "spinney/common/elementary.h"

#include <functional>
#include <limits>
#include <utility>

#include "bits.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"
#include "spinney/common/random.h"

namespace bits {

using namespace spinney;

namespace {

// Numbers of a range, and numbers of all sizes.
std::vector<double> arguments(double low, double high) {
  std::vector<double> out;
  common::Stream stream(7, common::Purpose::rows, 0);
  for (int i = 0; i < 20000; ++i) {
    out.push_back(low + stream.uniform() * (high - low));
    out.push_back(std::bit_cast<double>(stream.bits()));
  }
  return out;
}

}  // namespace

void print_elementary() {
  const std::vector<std::pair<const char*, double (*)(double)>> functions = {
      {"exp", [](double x) { return common::exp(x); }},
      {"log", [](double x) { return common::log(x); }},
      {"exp_unclamped", common::exp_unclamped},
      {"exp2", common::exp2},
      {"log2", common::log2},
      {"log1p", common::log1p},
      {"sin", common::sin},
      {"cos", common::cos},
      {"asin", common::asin},
      {"erfc", common::erfc}};
  for (const auto& [name, function] : functions) {
    print(std::string("function ") + name, [&](Hash& hash) {
      for (const double low : {-1.0, -20.0, -750.0}) {
        for (const double x : arguments(low, -low)) hash.add(function(x));
      }
    });
  }
  print("function pow", [](Hash& hash) {
    const std::vector<double> x = arguments(0, 5), y = arguments(-9, 9);
    for (std::size_t i = 0; i < x.size(); ++i) hash.add(common::pow(x[i], y[i]));
    for (std::size_t i = 1; i < x.size(); ++i) hash.add(common::pow(x[i - 1], y[i]));
  });
}

}  // namespace bits
