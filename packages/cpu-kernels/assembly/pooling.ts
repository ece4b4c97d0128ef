// Pooling of NHWC images: a window's pixels are visited tap by tap, four channels at a time.
import { madd } from "./lanes";

/**
 * y[n, i, j, c] = max of x over the window; padding never wins, NaN does.
 *
 * `top`, `left`: padding before the first row and column. A window sees at least one pixel.
 */
export function maxPool2d(
  x: usize, y: usize, batch: i32, height: i32, width: i32, channels: i32, outHeight: i32, outWidth: i32,
  windowY: i32, windowX: i32, strideY: i32, strideX: i32, top: i32, left: i32,
): void {
  const pixel = (<usize>channels) << 2;
  const row = <usize>width * pixel;
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const y0 = max(0, i * strideY - top), y1 = min(height, i * strideY - top + windowY);
      for (let j = 0; j < outWidth; j++) {
        const x0 = max(0, j * strideX - left), x1 = min(width, j * strideX - left + windowX);
        const corner = x + <usize>((n * height + y0) * width + x0) * pixel;
        let c: usize = 0;
        if (ASC_FEATURE_SIMD) {
          for (; c + 16 <= pixel; c += 16) {
            // pmax keeps the first operand unless it is smaller: one instruction, but it loses a NaN in the second, so
            // those are kept aside.
            let best = f32x4.splat(-Infinity);
            let unordered = i32x4.splat(0);
            let start = corner + c;
            for (let r = y0; r < y1; r++) {
              let at = start;
              for (let s = x0; s < x1; s++) {
                const value = v128.load(at);
                best = f32x4.pmax(best, value);
                unordered = v128.or(unordered, f32x4.ne(value, value));
                at += pixel;
              }
              start += row;
            }
            v128.store(y + c, v128.or(best, unordered));
          }
        }
        for (; c < pixel; c += 4) {
          let best: f32 = -Infinity;
          let start = corner + c;
          for (let r = y0; r < y1; r++) {
            let at = start;
            for (let s = x0; s < x1; s++) {
              best = max<f32>(best, load<f32>(at));
              at += pixel;
            }
            start += row;
          }
          store<f32>(y + c, best);
        }
        y += pixel;
      }
    }
  }
}

/**
 * dx[n, h, v, c] = Σ of g over the windows whose first maximum (rows first) lies at that pixel; the first NaN counts as
 * the maximum.
 */
export function maxPool2dBackward(
  x: usize, g: usize, dx: usize, batch: i32, height: i32, width: i32, channels: i32, outHeight: i32, outWidth: i32,
  windowY: i32, windowX: i32, strideY: i32, strideX: i32, top: i32, left: i32,
): void {
  const pixel = (<usize>channels) << 2;
  const row = <usize>width * pixel;
  // Windows side by side write each pixel once; no need to clear and add.
  const tiling = strideY == windowY && strideX == windowX && outHeight * strideY == height && outWidth * strideX == width && top == 0 && left == 0;
  if (!tiling) memory.fill(dx, 0, <usize>(batch * height) * row);
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const y0 = max(0, i * strideY - top), y1 = min(height, i * strideY - top + windowY);
      for (let j = 0; j < outWidth; j++) {
        const x0 = max(0, j * strideX - left), x1 = min(width, j * strideX - left + windowX);
        const corner = <usize>((n * height + y0) * width + x0) * pixel;
        let c: usize = 0;
        if (ASC_FEATURE_SIMD) {
          for (; c + 16 <= pixel; c += 16) {
            let start = corner + c;
            let best = v128.load(x + start);
            let chosen = i32x4.splat(0); // tap of the maximum so far
            let tap = 0;
            for (let r = y0; r < y1; r++) {
              let at = start;
              for (let s = x0; s < x1; s++) {
                const value = v128.load(x + at);
                // Larger, or a NaN after a number: !(value <= best) is true for both, but also after a NaN.
                const wins = v128.and(v128.not(f32x4.le(value, best)), f32x4.eq(best, best));
                best = v128.bitselect(value, best, wins);
                chosen = v128.bitselect(i32x4.splat(tap), chosen, wins);
                tap++;
                at += pixel;
              }
              start += row;
            }
            const share = v128.load(g + c);
            start = corner + c;
            tap = 0;
            for (let r = y0; r < y1; r++) {
              let at = dx + start;
              for (let s = x0; s < x1; s++) {
                const part = v128.and(share, i32x4.eq(chosen, i32x4.splat(tap)));
                v128.store(at, tiling ? part : f32x4.add(v128.load(at), part));
                tap++;
                at += pixel;
              }
              start += row;
            }
          }
        }
        for (; c < pixel; c += 4) {
          let start = corner + c;
          let best = load<f32>(x + start);
          let chosen = start;
          for (let r = y0; r < y1; r++) {
            let at = start;
            for (let s = x0; s < x1; s++) {
              const value = load<f32>(x + at);
              if (!(value <= best) && best == best) {
                best = value;
                chosen = at;
              }
              if (tiling) store<f32>(dx + at, 0);
              at += pixel;
            }
            start += row;
          }
          store<f32>(dx + chosen, load<f32>(dx + chosen) + load<f32>(g + c));
        }
        g += pixel;
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function share(rows: i32, across: i32, windowY: i32, windowX: i32, countPadding: bool): f32 {
  return <f32>1 / <f32>(countPadding ? windowY * windowX : rows * across);
}

/**
 * y[n, i, j, c] = mean of x over the window: over all of it if `countPadding`, else over its pixels inside of the
 * image.
 */
export function avgPool2d(
  x: usize, y: usize, batch: i32, height: i32, width: i32, channels: i32, outHeight: i32, outWidth: i32,
  windowY: i32, windowX: i32, strideY: i32, strideX: i32, top: i32, left: i32, countPadding: bool,
): void {
  const pixel = (<usize>channels) << 2;
  const row = <usize>width * pixel;
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const y0 = max(0, i * strideY - top), y1 = min(height, i * strideY - top + windowY);
      for (let j = 0; j < outWidth; j++) {
        const x0 = max(0, j * strideX - left), x1 = min(width, j * strideX - left + windowX);
        const corner = x + <usize>((n * height + y0) * width + x0) * pixel;
        const scale = share(y1 - y0, x1 - x0, windowY, windowX, countPadding);
        let c: usize = 0;
        if (ASC_FEATURE_SIMD) {
          for (; c + 16 <= pixel; c += 16) {
            let sum = f32x4.splat(0);
            let start = corner + c;
            for (let r = y0; r < y1; r++) {
              let at = start;
              for (let s = x0; s < x1; s++) {
                sum = f32x4.add(sum, v128.load(at));
                at += pixel;
              }
              start += row;
            }
            v128.store(y + c, f32x4.mul(sum, f32x4.splat(scale)));
          }
        }
        for (; c < pixel; c += 4) {
          let sum: f32 = 0;
          let start = corner + c;
          for (let r = y0; r < y1; r++) {
            let at = start;
            for (let s = x0; s < x1; s++) {
              sum += load<f32>(at);
              at += pixel;
            }
            start += row;
          }
          store<f32>(y + c, sum * scale);
        }
        y += pixel;
      }
    }
  }
}

/** dx[n, h, v, c] = Σ of g / divisor over the windows that cover that pixel. */
export function avgPool2dBackward(
  g: usize, dx: usize, batch: i32, height: i32, width: i32, channels: i32, outHeight: i32, outWidth: i32,
  windowY: i32, windowX: i32, strideY: i32, strideX: i32, top: i32, left: i32, countPadding: bool,
): void {
  const pixel = (<usize>channels) << 2;
  const row = <usize>width * pixel;
  memory.fill(dx, 0, <usize>(batch * height) * row);
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const y0 = max(0, i * strideY - top), y1 = min(height, i * strideY - top + windowY);
      for (let j = 0; j < outWidth; j++) {
        const x0 = max(0, j * strideX - left), x1 = min(width, j * strideX - left + windowX);
        const corner = dx + <usize>((n * height + y0) * width + x0) * pixel;
        const scale = share(y1 - y0, x1 - x0, windowY, windowX, countPadding);
        for (let r = y0; r < y1; r++) {
          let at = corner + <usize>(r - y0) * row;
          for (let s = x0; s < x1; s++) {
            let c: usize = 0;
            if (ASC_FEATURE_SIMD) {
              for (; c + 16 <= pixel; c += 16) v128.store(at + c, madd(v128.load(g + c), f32x4.splat(scale), v128.load(at + c)));
            }
            for (; c < pixel; c += 4) store<f32>(at + c, load<f32>(at + c) + load<f32>(g + c) * scale);
            at += pixel;
          }
        }
        g += pixel;
      }
    }
  }
}
