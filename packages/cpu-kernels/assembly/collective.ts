// Reductions between buffers of different ranks. Each export is named after its operation and dtype, and
// @skein/collectives looks up the name. `accumulate*` computes target ← a ∘ b, where target may be a or b. `exchange*`
// computes a ∘ b and writes the result to a and b, which is the complete all-reduce of two ranks in one pass.
import { decodeF16, encodeF16, roundToBf16, roundToF16 } from "./half";
import { addF, maxF, minF, shlI, shrU } from "./vectors";

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

/**
 * Applies the reduction operation of a collective to f16 numbers, given by their bits in the low half of each lane:
 * decodes both operands, applies the operation, rounds the result, and encodes it.
 */
// @ts-ignore: decorator
@inline
function applyHalf<T>(operation: i32, a: T, b: T): T {
  const x = decodeF16<T>(a);
  const y = decodeF16<T>(b);
  const r = operation == SUM ? addF<T>(x, y) : operation == MAX ? maxF<T>(x, y) : minF<T>(x, y);
  return encodeF16<T>(roundToF16<T>(r));
}

// @ts-ignore: decorator
@inline
function applyBrain<T>(operation: i32, a: T, b: T): T {
  const x = shlI<T>(a, 16);
  const y = shlI<T>(b, 16);
  const r = operation == SUM ? addF<T>(x, y) : operation == MAX ? maxF<T>(x, y) : minF<T>(x, y);
  return shrU<T>(roundToBf16<T>(r), 16);
}

// @ts-ignore: decorator
@inline
function accumulate16(operation: i32, brain: bool, target: usize, a: usize, b: usize, count: i32): void {
  let i: usize = 0;
  const bytes: usize = (<usize>count) << 1;
  if (ASC_FEATURE_SIMD) {
    for (; i + 8 <= bytes; i += 8) {
      const x = v128.load16x4_u(a + i);
      const y = v128.load16x4_u(b + i);
      const r = brain ? applyBrain<v128>(operation, x, y) : applyHalf<v128>(operation, x, y);
      store<u64>(target + i, i64x2.extract_lane(i16x8.narrow_i32x4_u(r, r), 0));
    }
  }
  for (; i < bytes; i += 2) {
    const x = reinterpret<f32>(<u32>load<u16>(a + i));
    const y = reinterpret<f32>(<u32>load<u16>(b + i));
    const r = brain ? applyBrain<f32>(operation, x, y) : applyHalf<f32>(operation, x, y);
    store<u16>(target + i, <u16>reinterpret<u32>(r));
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
  accumulate16(SUM, false, target, a, b, count);
}

export function accumulateSumBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulate16(SUM, true, target, a, b, count);
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
  accumulate16(MAX, false, target, a, b, count);
}

export function accumulateMaxBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulate16(MAX, true, target, a, b, count);
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
  accumulate16(MIN, false, target, a, b, count);
}

export function accumulateMinBF16(target: usize, a: usize, b: usize, count: i32): void {
  accumulate16(MIN, true, target, a, b, count);
}

/** Copies bytes between regions that may overlap. */
export function copyRegion(target: usize, source: usize, bytes: i32): void {
  memory.copy(target, source, bytes);
}
