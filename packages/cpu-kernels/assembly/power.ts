// Computes `a^b` by logarithm and exponential in f64. f64 gives full f32 precision for |b log a| up to 104.

const LN2: f64 = 0.6931471805599453;
const LOG2_E: f64 = 1.4426950408889634;

/**
 * Returns the natural logarithm of a positive, finite x as `2 atanh f`, f = (m-1)/(m+1). Relative error: about 1e-13.
 */
function logWide(x: f64): f64 {
  const shifted = reinterpret<i64>(x) - 0x3fe6a09e667f3bcd; // bits of √½
  const e = <f64>(shifted >> 52);
  const m = reinterpret<f64>((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
  const f = (m - 1.0) / (m + 1.0);
  const z = f * f;
  const series =
    1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0 + z * (1.0 / 15.0)))))));
  return e * LN2 + 2.0 * f * series;
}

/** Returns `e^x` for |x| ≤ 700. Relative error: about 1e-13. */
function expWide(x: f64): f64 {
  const n = nearest<f64>(x * LOG2_E);
  const r = x - n * LN2;
  const series =
    1.0 +
    r *
      (1.0 +
        r *
          (1.0 / 2.0 +
            r *
              (1.0 / 6.0 +
                r *
                  (1.0 / 24.0 +
                    r *
                      (1.0 / 120.0 +
                        r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * (1.0 / 40320.0 + r * (1.0 / 362880.0 + r * (1.0 / 3628800.0))))))))));
  return series * reinterpret<f64>((<i64>n + 1023) << 52);
}

/** Returns `a^b` as defined by IEEE 754 `pow`, including its special cases. */
export function powerOf(a: f32, b: f32): f32 {
  if (b == 0 || a == 1) return 1;
  if (a != a || b != b) return NaN;
  const whole = floor<f32>(b) == b;
  // Every f32 of magnitude 2^24 or more is even.
  const odd = whole && abs(b) < 16777216.0 && (<i32>b & 1) != 0;
  const x = abs(a);
  let magnitude: f32;
  if (abs(b) == Infinity) magnitude = x == 1 ? 1 : x > 1 == b > 0 ? Infinity : 0;
  else if (x == 0 || x == Infinity) magnitude = (x == 0) == b > 0 ? 0 : Infinity;
  else {
    if (a < 0 && !whole) return NaN;
    const t = <f64>b * logWide(<f64>x);
    magnitude = <f32>expWide(min<f64>(max<f64>(t, -120.0), 120.0));
  }
  return a < 0 && odd ? -magnitude : a == 0 && odd && reinterpret<i32>(a) < 0 ? -magnitude : magnitude;
}
