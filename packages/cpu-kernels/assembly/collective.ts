// Reductions between buffers of different ranks. Each export name says operation and dtype; @skein/collectives looks them up.
// `accumulate*`: target ← a ∘ b, where target may be a or b. `exchange*`: a and b ← a ∘ b, the whole all-reduce of two ranks in one pass.

const SUM: i32 = 0;
const MAX: i32 = 1;
const MIN: i32 = 2;

// @ts-ignore: decorator
@inline
function apply<T>(operation: i32, a: T, b: T): T {
  if (operation == SUM) return <T>(a + b);
  if (operation == MAX) return max<T>(a, b);
  return min<T>(a, b);
}

// @ts-ignore: decorator
@inline
function applyLanes<T>(operation: i32, a: v128, b: v128): v128 {
  if (operation == SUM) return v128.add<T>(a, b);
  if (operation == MAX) return v128.max<T>(a, b);
  return v128.min<T>(a, b);
}

// @ts-ignore: decorator
@inline
function accumulate<T>(operation: i32, target: usize, a: usize, b: usize, count: i32): void {
  let i: usize = 0;
  const bytes: usize = (<usize>count) << 2;
  if (ASC_FEATURE_SIMD) {
    for (; i + 64 <= bytes; i += 64) {
      const r0 = applyLanes<T>(operation, v128.load(a + i), v128.load(b + i));
      const r1 = applyLanes<T>(operation, v128.load(a + i, 16), v128.load(b + i, 16));
      const r2 = applyLanes<T>(operation, v128.load(a + i, 32), v128.load(b + i, 32));
      const r3 = applyLanes<T>(operation, v128.load(a + i, 48), v128.load(b + i, 48));
      v128.store(target + i, r0);
      v128.store(target + i, r1, 16);
      v128.store(target + i, r2, 32);
      v128.store(target + i, r3, 48);
    }
  }
  for (; i < bytes; i += 4) store<T>(target + i, apply<T>(operation, load<T>(a + i), load<T>(b + i)));
}

// @ts-ignore: decorator
@inline
function exchange<T>(operation: i32, a: usize, b: usize, count: i32): void {
  let i: usize = 0;
  const bytes: usize = (<usize>count) << 2;
  if (ASC_FEATURE_SIMD) {
    for (; i + 64 <= bytes; i += 64) {
      const r0 = applyLanes<T>(operation, v128.load(a + i), v128.load(b + i));
      const r1 = applyLanes<T>(operation, v128.load(a + i, 16), v128.load(b + i, 16));
      const r2 = applyLanes<T>(operation, v128.load(a + i, 32), v128.load(b + i, 32));
      const r3 = applyLanes<T>(operation, v128.load(a + i, 48), v128.load(b + i, 48));
      v128.store(a + i, r0);
      v128.store(a + i, r1, 16);
      v128.store(a + i, r2, 32);
      v128.store(a + i, r3, 48);
      v128.store(b + i, r0);
      v128.store(b + i, r1, 16);
      v128.store(b + i, r2, 32);
      v128.store(b + i, r3, 48);
    }
  }
  for (; i < bytes; i += 4) {
    const r = apply<T>(operation, load<T>(a + i), load<T>(b + i));
    store<T>(a + i, r);
    store<T>(b + i, r);
  }
}

// @ts-ignore: decorator
@inline
function halfToFloat(bits: u32): f32 {
  const sign: u32 = (bits & 0x8000) << 16;
  const magnitude: u32 = bits & 0x7fff;
  if (magnitude >= 0x7c00) return reinterpret<f32>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  if (magnitude < 0x0400) return reinterpret<f32>(sign | reinterpret<u32>(<f32>magnitude * 5.9604644775390625e-8)); // subnormal: units of 2^-24
  return reinterpret<f32>(sign | ((magnitude << 13) + 0x38000000));
}

/** Round to nearest half, ties to even. */
// @ts-ignore: decorator
@inline
function floatToHalf(value: f32): u32 {
  const bits = reinterpret<u32>(value);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // 0.5 has a unit in the last place of 2^-24, so adding it leaves the rounded count of half subnormal units in the low bits.
  if (magnitude < 0x38800000) return sign | (reinterpret<u32>(reinterpret<f32>(magnitude) + 0.5) - 0x3f000000);
  const rebased = magnitude - 0x38000000;
  return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
}

// @ts-ignore: decorator
@inline
function brainToFloat(bits: u32): f32 {
  return reinterpret<f32>(bits << 16);
}

/** Round to nearest bfloat16, ties to even. */
// @ts-ignore: decorator
@inline
function floatToBrain(value: f32): u32 {
  const bits = reinterpret<u32>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0 | ((bits >>> 16) & 0x8000);
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

// @ts-ignore: decorator
@inline
function accumulateHalf(operation: i32, target: usize, a: usize, b: usize, count: i32): void {
  const bytes: usize = (<usize>count) << 1;
  for (let i: usize = 0; i < bytes; i += 2) {
    store<u16>(target + i, <u16>floatToHalf(apply<f32>(operation, halfToFloat(load<u16>(a + i)), halfToFloat(load<u16>(b + i)))));
  }
}

// @ts-ignore: decorator
@inline
function accumulateBrain(operation: i32, target: usize, a: usize, b: usize, count: i32): void {
  const bytes: usize = (<usize>count) << 1;
  for (let i: usize = 0; i < bytes; i += 2) {
    store<u16>(target + i, <u16>floatToBrain(apply<f32>(operation, brainToFloat(load<u16>(a + i)), brainToFloat(load<u16>(b + i)))));
  }
}

export function accumulateSumF32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<f32>(SUM, target, a, b, count);
}
export function exchangeSumF32(a: usize, b: usize, count: i32): void {
  exchange<f32>(SUM, a, b, count);
}

export function accumulateSumI32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<i32>(SUM, target, a, b, count);
}
export function exchangeSumI32(a: usize, b: usize, count: i32): void {
  exchange<i32>(SUM, a, b, count);
}

export function accumulateSumU32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<u32>(SUM, target, a, b, count);
}
export function exchangeSumU32(a: usize, b: usize, count: i32): void {
  exchange<u32>(SUM, a, b, count);
}

export function accumulateSumF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateHalf(SUM, target, a, b, count);
}

export function accumulateSumBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateBrain(SUM, target, a, b, count);
}

export function accumulateMaxF32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<f32>(MAX, target, a, b, count);
}
export function exchangeMaxF32(a: usize, b: usize, count: i32): void {
  exchange<f32>(MAX, a, b, count);
}

export function accumulateMaxI32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<i32>(MAX, target, a, b, count);
}
export function exchangeMaxI32(a: usize, b: usize, count: i32): void {
  exchange<i32>(MAX, a, b, count);
}

export function accumulateMaxU32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<u32>(MAX, target, a, b, count);
}
export function exchangeMaxU32(a: usize, b: usize, count: i32): void {
  exchange<u32>(MAX, a, b, count);
}

export function accumulateMaxF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateHalf(MAX, target, a, b, count);
}

export function accumulateMaxBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateBrain(MAX, target, a, b, count);
}

export function accumulateMinF32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<f32>(MIN, target, a, b, count);
}
export function exchangeMinF32(a: usize, b: usize, count: i32): void {
  exchange<f32>(MIN, a, b, count);
}

export function accumulateMinI32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<i32>(MIN, target, a, b, count);
}
export function exchangeMinI32(a: usize, b: usize, count: i32): void {
  exchange<i32>(MIN, a, b, count);
}

export function accumulateMinU32(target: usize, a: usize, b: usize, count: i32): void {
  accumulate<u32>(MIN, target, a, b, count);
}
export function exchangeMinU32(a: usize, b: usize, count: i32): void {
  exchange<u32>(MIN, a, b, count);
}

export function accumulateMinF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateHalf(MIN, target, a, b, count);
}

export function accumulateMinBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulateBrain(MIN, target, a, b, count);
}

/** Copy bytes between regions that may overlap. */
export function copyBytes(target: usize, source: usize, bytes: i32): void {
  memory.copy(target, source, bytes);
}
