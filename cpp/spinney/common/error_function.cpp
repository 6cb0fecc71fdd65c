// The complementary error function.
#include <array>
#include <cmath>
#include <cstddef>

#include "spinney/common/elementary.h"

namespace spinney::common {

namespace {

// Polynomials near the smallest relative error, the highest power first.
//
// erf(x) / x in x², for |x| <= 1/2.
constexpr std::array<double, 10> erf_near_zero = {
    -0x1.39fb524e9c1f7p-23, 0x1.b776442df3041p-20, -0x1.f4bb9f7301dedp-17, 0x1.f9a2a6635fe79p-14,
    -0x1.c02db23d41138p-11, 0x1.565bcd0aa6349p-8,  -0x1.b82ce3127f739p-6,  0x1.ce2f21a042b29p-4,
    -0x1.812746b0379e6p-2,  0x1.20dd750429b6dp+0};

// exp(x²) erfc(x) in x - 1, for x of [0.5, 1.5].
constexpr std::array<double, 18> scaled_near_one = {
    -0x1.504357b3d162cp-25, 0x1.2805d34f13fa4p-23, -0x1.cd9df537d6bd2p-22, 0x1.80f28d1204b75p-20,
    -0x1.39cb26d313b35p-18, 0x1.ef1520bdad316p-17, -0x1.7ab1b42ac1c6cp-15, 0x1.184fa62a30f35p-13,
    -0x1.908223a54dd6cp-12, 0x1.135263365ae98p-10, -0x1.6af2654dad28ep-9,  0x1.c8cb958b893d1p-8,
    -0x1.10fcf1b559836p-6,  0x1.33cad0ef5f604p-5,  -0x1.44837f8906fccp-4,  0x1.3c27283c32cbdp-3,
    -0x1.17c4e3f17c050p-2,  0x1.b5d8780f956b2p-2};

// exp(x²) erfc(x) in x - 2.5, for x of [1.5, 3.5].
constexpr std::array<double, 21> scaled_in_the_middle = {
    0x1.40dd8fc701adap-41, -0x1.7ba9de6bfe55ap-39, 0x1.512ffefd3d29cp-37, -0x1.7f0cb5c58974ep-35,
    0x1.ba93376c405c9p-33, -0x1.e6c79844a9af4p-31, 0x1.0641b98e82453p-28, -0x1.15c49b1044fa8p-26,
    0x1.205d905575690p-24, -0x1.2514d2906565fp-22, 0x1.234fededb7d4dp-20, -0x1.1ad10cc967751p-18,
    0x1.0bcba3224bdd6p-16, -0x1.edd4239e4c29fp-15, 0x1.ba8a67cfb7ceap-13, -0x1.809ce8ab4ac69p-11,
    0x1.435c04e207cf3p-9,  -0x1.0632076809e60p-7,  0x1.98958a7a8e4a3p-6,  -0x1.3086d7f01ac85p-4,
    0x1.afbb3f3b7343bp-3};

// x exp(x²) erfc(x) in 1/x², for x of [3.5, 28].
constexpr std::array<double, 17> scaled_of_large = {
    0x1.47b5920e5f890p+30, -0x1.051b36a5d6a1ap+30, 0x1.8a59ef910520fp+28, -0x1.7bf86ef30b268p+26,
    0x1.0b72a8ed8a759p+24, -0x1.2e41fef2d0604p+21, 0x1.2af9ab3182509p+18, -0x1.1a6c1688fffa3p+15,
    0x1.143a07b99ae5ap+12, -0x1.295763c70d76dp+9,  0x1.6e7d538acd084p+6,  -0x1.0a93bbb21e08fp+4,
    0x1.d9eb4a154fd9fp+1,  -0x1.0ecf9d9ac06e0p+0,  0x1.b14c2f85f1a42p-2,  -0x1.20dd750429982p-2,
    0x1.20dd750429b6dp-1};

// The last term in two parts.
template <std::size_t n>
detail::Sum evaluate(const std::array<double, n>& coefficients, double x) {
  double sum = coefficients[0];
  for (std::size_t i = 1; i + 1 < n; ++i) sum = sum * x + coefficients[i];
  const double last = coefficients[n - 1];
  const double high = last + sum * x;
  return {high, (last - high) + sum * x};
}

// exp(x²) erfc(x) for x of [0.5, 28].
detail::Sum scaled_erfc(double x) {
  if (x < 1.5) return evaluate(scaled_near_one, x - 1.0);
  if (x < 3.5) return evaluate(scaled_in_the_middle, x - 2.5);
  const detail::Sum scaled = evaluate(scaled_of_large, 1.0 / (x * x));
  const double quotient = scaled.high / x;
  const detail::Sum product = detail::multiply(quotient, x);
  return {quotient, ((scaled.high - product.high) - product.low + scaled.low) / x};
}

// For x >= 1/2.
double erfc_of_large(double x) {
  if (x > 28.0) return 0.0;
  // The power includes the factor, so that subnormal results are rounded once.
  const detail::Sum square = detail::multiply(x, x);
  return detail::exp_of_sum({-square.high, -square.low}, scaled_erfc(x));
}

}  // namespace

double erfc(double x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) < 0.5) {
    const detail::Sum ratio = evaluate(erf_near_zero, x * x);
    const detail::Sum erf = detail::multiply(x, ratio.high);
    return (1.0 - erf.high) - (erf.low + x * ratio.low);
  }
  return x > 0 ? erfc_of_large(x) : 2.0 - erfc_of_large(-x);
}

}  // namespace spinney::common
