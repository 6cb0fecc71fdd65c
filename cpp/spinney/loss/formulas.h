// The losses of one raw score f and a target y. Each has value(y, f) and derivatives(y, f).
//
// To add a loss: a struct here, its kind in loss.h, a case in with_formula (loss.cpp).
#pragma once

#include "spinney/common/compiler.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::loss {

struct GradientAndHessian {
  double gradient;
  double hessian;
};

// (f − y)² / 2
struct SquaredError {
  static SPINNEY_INLINE double value(double y, double f) { return 0.5 * (f - y) * (f - y); }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) { return {f - y, 1.0}; }
};

// |f − y|
struct AbsoluteError {
  static SPINNEY_INLINE double value(double y, double f) { return f > y ? f - y : y - f; }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) {
    return {(f > y ? 1.0 : 0.0) - (f < y ? 1.0 : 0.0), 1.0};
  }
};

// With d = |f − y|: d² / 2 up to delta, delta (d − delta / 2) beyond it.
struct Huber {
  double delta;
  SPINNEY_INLINE double value(double y, double f) const {
    const double distance = f > y ? f - y : y - f;
    return distance <= delta ? 0.5 * distance * distance : delta * (distance - 0.5 * delta);
  }
  SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) const {
    const double difference = f - y;
    const double clipped = difference < -delta ? -delta : difference;
    return {clipped > delta ? delta : clipped, 1.0};
  }
};

// (1 − level) (f − y) if f > y, else level (y − f)
struct Quantile {
  double level;
  SPINNEY_INLINE double value(double y, double f) const {
    return f > y ? (1.0 - level) * (f - y) : level * (y - f);
  }
  SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) const {
    const double above = f > y ? 1.0 - level : 0.0;
    return {f < y ? -level : above, 1.0};
  }
};

// exp(f) − y f, half the Poisson deviance without terms of y alone
struct Poisson {
  static SPINNEY_INLINE double value(double y, double f) { return common::exp(f) - y * f; }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) {
    const double mean = common::exp(f);
    return {mean - y, mean};
  }
};

// f + y exp(−f), half the gamma deviance without terms of y alone
struct Gamma {
  static SPINNEY_INLINE double value(double y, double f) { return f + y * common::exp(-f); }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) {
    const double ratio = y * common::exp(-f);
    return {1.0 - ratio, ratio};
  }
};

// With p = power: exp((2 − p) f) / (2 − p) − y exp((1 − p) f) / (1 − p)
struct Tweedie {
  double power;
  SPINNEY_INLINE double value(double y, double f) const {
    return common::exp((2.0 - power) * f) / (2.0 - power) -
           y * common::exp((1.0 - power) * f) / (1.0 - power);
  }
  SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) const {
    const double a = y * common::exp((1.0 - power) * f);
    const double b = common::exp((2.0 - power) * f);
    return {b - a, (2.0 - power) * b - (1.0 - power) * a};
  }
};

// log(1 + exp(f)) − y f; the target may be any probability.
struct LogLoss {
  static SPINNEY_INLINE double value(double y, double f) {
    const double e = common::exp(f > 0 ? -f : f);
    return (f > 0 ? f : 0.0) + common::log_normal(1.0 + e) - y * f;
  }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) {
    const double e = common::exp(f > 0 ? -f : f);
    const double r = 1.0 / (1.0 + e);
    const double smaller = e * r;  // of the probabilities of the two classes
    return {(f > 0 ? r : smaller) - y, smaller * r};
  }
};

// exp(−s f) with s = 2y − 1
struct Exponential {
  static SPINNEY_INLINE double value(double y, double f) {
    return common::exp((1.0 - 2.0 * y) * f);
  }
  static SPINNEY_INLINE GradientAndHessian derivatives(double y, double f) {
    const double sign = 2.0 * y - 1.0;
    const double e = common::exp(-sign * f);
    return {-sign * e, e};
  }
};

}  // namespace spinney::loss
