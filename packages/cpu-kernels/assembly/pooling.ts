// Pooling of NHWC images. A window's pixels are visited tap by tap, four channels at a time.
import { madd } from "./lanes";

/**
 * Computes y[n, i, j, c] = max of x over the window. Padding is never the maximum; NaN is the maximum if present.
 *
 * `top` and `left` are the padding before the first row and column. A window contains at least one pixel.
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
            // pmax returns the first operand unless the first operand is smaller. It is a single instruction, but
            // ignores a NaN in the second operand, so NaN is tracked separately.
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
 * Computes the gradient of max pooling with adjacent windows of 2 × 2, for complete vectors only. Each pixel is read
 * and written once: the two pairs of a window are compared, then the maxima of the pairs. NaN counts as larger than
 * numbers, and among equal values the first is the maximum, as in the general case below.
 *
 * `lines` is the number of rows of all pooled images. Each pooled row corresponds to two rows of `row` bytes, with
 * pixels of `pixel` bytes.
 */
// @ts-ignore: decorator
@inline
function maxPoolPairsBackward(x: usize, g: usize, dx: usize, lines: i32, outWidth: i32, pixel: usize, row: usize): void {
  for (let line = 0; line < lines; line++) {
    for (let j = 0; j < outWidth; j++) {
      for (let c: usize = 0; c < pixel; c += 16) {
        const a = v128.load(x), b = v128.load(x + pixel), d = v128.load(x + row), e = v128.load(x + row + pixel);
        const secondAbove = v128.andnot(f32x4.eq(a, a), f32x4.le(b, a));
        const secondBelow = v128.andnot(f32x4.eq(d, d), f32x4.le(e, d));
        const above = v128.bitselect(b, a, secondAbove), beneath = v128.bitselect(e, d, secondBelow);
        const below = v128.andnot(f32x4.eq(above, above), f32x4.le(beneath, above));
        const share = v128.load(g);
        const shareAbove = v128.andnot(share, below), shareBelow = v128.and(share, below);
        v128.store(dx, v128.andnot(shareAbove, secondAbove));
        v128.store(dx + pixel, v128.and(shareAbove, secondAbove));
        v128.store(dx + row, v128.andnot(shareBelow, secondBelow));
        v128.store(dx + row + pixel, v128.and(shareBelow, secondBelow));
        x += 16;
        dx += 16;
        g += 16;
      }
      x += pixel;
      dx += pixel;
    }
    x += row;
    dx += row;
  }
}

/**
 * Computes dx[n, h, v, c] = Σ of g over the windows whose first maximum (in row-major order) is at this pixel. The
 * first NaN counts as the maximum.
 */
export function maxPool2dBackward(
  x: usize, g: usize, dx: usize, batch: i32, height: i32, width: i32, channels: i32, outHeight: i32, outWidth: i32,
  windowY: i32, windowX: i32, strideY: i32, strideX: i32, top: i32, left: i32,
): void {
  const pixel = (<usize>channels) << 2;
  const row = <usize>width * pixel;
  const tiling = strideY == windowY && strideX == windowX && outHeight * strideY == height && outWidth * strideX == width && top == 0 && left == 0;
  if (ASC_FEATURE_SIMD && tiling && windowY == 2 && windowX == 2 && pixel % 16 == 0) {
    maxPoolPairsBackward(x, g, dx, batch * outHeight, outWidth, pixel, row);
    return;
  }
  memory.fill(dx, 0, <usize>(batch * height) * row);
  const toGradient = dx - x;
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const y0 = max(0, i * strideY - top), y1 = min(height, i * strideY - top + windowY);
      for (let j = 0; j < outWidth; j++) {
        const x0 = max(0, j * strideX - left), x1 = min(width, j * strideX - left + windowX);
        const corner = x + <usize>((n * height + y0) * width + x0) * pixel;
        let c: usize = 0;
        if (ASC_FEATURE_SIMD) {
          for (; c + 16 <= pixel; c += 16) {
            let start = corner + c;
            let best = v128.load(start);
            let chosen = i32x4.splat(<i32>start); // per lane, the start of the vector that contains the maximum so far
            for (let r = y0; r < y1; r++) {
              let at = start;
              for (let s = x0; s < x1; s++) {
                const value = v128.load(at);
                // True for a larger value, or a NaN after a number. !(value <= best) is true in both cases, but also
                // after a NaN, which is excluded here.
                const wins = v128.andnot(f32x4.eq(best, best), f32x4.le(value, best));
                best = v128.bitselect(value, best, wins);
                chosen = v128.bitselect(i32x4.splat(<i32>at), chosen, wins);
                at += pixel;
              }
              start += row;
            }
            // Adding at four addresses costs less than adding a vector, mostly zeros, to every pixel of the window.
            const to = i32x4.add(chosen, i32x4.splat(<i32>toGradient));
            const share = v128.load(g + c);
            const to0 = <usize>(<u32>i32x4.extract_lane(to, 0)), to1 = <usize>(<u32>i32x4.extract_lane(to, 1));
            const to2 = <usize>(<u32>i32x4.extract_lane(to, 2)), to3 = <usize>(<u32>i32x4.extract_lane(to, 3));
            store<f32>(to0, load<f32>(to0) + f32x4.extract_lane(share, 0));
            store<f32>(to1, load<f32>(to1, 4) + f32x4.extract_lane(share, 1), 4);
            store<f32>(to2, load<f32>(to2, 8) + f32x4.extract_lane(share, 2), 8);
            store<f32>(to3, load<f32>(to3, 12) + f32x4.extract_lane(share, 3), 12);
          }
        }
        for (; c < pixel; c += 4) {
          let start = corner + c;
          let best = load<f32>(start);
          let chosen = start;
          for (let r = y0; r < y1; r++) {
            let at = start;
            for (let s = x0; s < x1; s++) {
              const value = load<f32>(at);
              if (!(value <= best) && best == best) {
                best = value;
                chosen = at;
              }
              at += pixel;
            }
            start += row;
          }
          store<f32>(chosen + toGradient, load<f32>(chosen + toGradient) + load<f32>(g + c));
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
 * Computes y[n, i, j, c] = mean of x over the complete window if `countPadding`, otherwise over the window's pixels
 * inside of the image.
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

/**
 * Computes dx[n, h, v, c] = Σ g / count over the windows that contain this pixel. `count` is the number of pixels that
 * are averaged in a window.
 */
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
