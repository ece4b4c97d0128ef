// Depthwise convolution of NHWC images, with one input and one output channel per group. Consecutive channels are in
// one vector, and every tap is a multiply-add of complete pixels with one row of the weight.
import { TAP_BYTES } from "./blocks";
import { madd } from "./lanes";

/**
 * Size in bytes of an entry in the tap list, which contains the taps that are inside the image: weight address and
 * input byte offset, u32 each.
 */
const ENTRY_BYTES: usize = 8;

/** Depthwise convolution: computes one output pixel, Σ x · weight over the taps of `list`, for each channel. */
function onePixel(corner: usize, list: usize, taps: i32, pixel: usize, to: usize): void {
  const end = list + <usize>taps * ENTRY_BYTES;
  let c: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; c + 16 <= pixel; c += 16) {
      let sum = f32x4.splat(0);
      for (let tap = list; tap < end; tap += ENTRY_BYTES) {
        sum = madd(v128.load(corner + c + load<usize>(tap, 4)), v128.load(load<usize>(tap) + c), sum);
      }
      v128.store(to + c, sum);
    }
  }
  for (; c < pixel; c += 4) {
    let sum: f32 = 0;
    for (let tap = list; tap < end; tap += ENTRY_BYTES) sum += load<f32>(corner + c + load<usize>(tap, 4)) * load<f32>(load<usize>(tap) + c);
    store<f32>(to + c, sum);
  }
}

/**
 * Variant of `onePixel` for four pixels that are `step` bytes apart, with results `toStep` bytes apart. The four pixels
 * share the weight loads.
 */
function fourPixels(corner: usize, step: usize, list: usize, taps: i32, pixel: usize, to: usize, toStep: usize): void {
  const end = list + <usize>taps * ENTRY_BYTES;
  let c: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; c + 16 <= pixel; c += 16) {
      let s0 = f32x4.splat(0), s1 = f32x4.splat(0), s2 = f32x4.splat(0), s3 = f32x4.splat(0);
      for (let tap = list; tap < end; tap += ENTRY_BYTES) {
        const weight = v128.load(load<usize>(tap) + c);
        let at = corner + c + load<usize>(tap, 4);
        s0 = madd(v128.load(at), weight, s0);
        at += step;
        s1 = madd(v128.load(at), weight, s1);
        at += step;
        s2 = madd(v128.load(at), weight, s2);
        s3 = madd(v128.load(at + step), weight, s3);
      }
      const at = to + c;
      v128.store(at, s0);
      v128.store(at + toStep, s1);
      v128.store(at + 2 * toStep, s2);
      v128.store(at + 3 * toStep, s3);
    }
  }
  if (c == pixel) return;
  // The last channels, fewer than four. In the scalar build, all channels.
  for (let p = 0; p < 4; p++) {
    const from = corner + <usize>p * step, result = to + <usize>p * toStep;
    for (let d = c; d < pixel; d += 4) {
      let sum: f32 = 0;
      for (let tap = list; tap < end; tap += ENTRY_BYTES) sum += load<f32>(from + d + load<usize>(tap, 4)) * load<f32>(load<usize>(tap) + d);
      store<f32>(result + d, sum);
    }
  }
}

/**
 * Computes result(n, i, j)[c] = Σ over taps t of source(n, i · stepY + offsetY(t), j · stepX + offsetX(t))[c] ·
 * weight(t)[c], with zeros outside of the source. Sizes as in `gatherProduct`; a pixel of the source has `pixel` bytes.
 * `lists` is space for two lists with one entry per tap.
 */
export function depthwise(
  source: usize, images: i32, height: i32, width: i32, pixel: usize, stepY: i32, stepX: i32, tapList: usize, taps: i32,
  result: usize, imageBytes: usize, rowBytes: usize, pixelBytes: usize, rows: i32, across: i32, lists: usize,
): void {
  const border = lists + <usize>taps * ENTRY_BYTES;
  let lowX = 0, highX = 0;
  for (let t = 0; t < taps; t++) {
    const x = load<i32>(tapList + <usize>t * TAP_BYTES, 8);
    lowX = min(lowX, x);
    highX = max(highX, x);
  }
  for (let n = 0; n < images; n++) {
    for (let i = 0; i < rows; i++) {
      const y = i * stepY;
      const line = source + <usize>((n * height + y) * width) * pixel;
      let to = result + <usize>n * imageBytes + <usize>i * rowBytes;
      // Taps above and below the image are skipped for the complete row.
      let some = 0;
      for (let t = 0; t < taps; t++) {
        const tap = tapList + <usize>t * TAP_BYTES;
        if (<u32>(y + load<i32>(tap, 4)) >= <u32>height) continue;
        const entry = lists + <usize>some * ENTRY_BYTES;
        store<u32>(entry, load<u32>(tap));
        store<i32>(entry, (load<i32>(tap, 4) * width + load<i32>(tap, 8)) * <i32>pixel, 4);
        some++;
      }
      for (let j = 0; j < across;) {
        const x = j * stepX;
        const corner = line + <usize>x * pixel;
        const inside = x + lowX >= 0 && x + highX < width;
        if (inside && j + 4 <= across && x + 3 * stepX + highX < width) {
          fourPixels(corner, <usize>stepX * pixel, lists, some, pixel, to, pixelBytes);
          to += 4 * pixelBytes;
          j += 4;
          continue;
        }
        let list = lists, count = some;
        if (!inside) {
          list = border;
          count = 0;
          for (let t = 0; t < taps; t++) {
            const tap = tapList + <usize>t * TAP_BYTES;
            if (<u32>(y + load<i32>(tap, 4)) >= <u32>height || <u32>(x + load<i32>(tap, 8)) >= <u32>width) continue;
            const entry = border + <usize>count * ENTRY_BYTES;
            store<u32>(entry, load<u32>(tap));
            store<i32>(entry, (load<i32>(tap, 4) * width + load<i32>(tap, 8)) * <i32>pixel, 4);
            count++;
          }
        }
        onePixel(corner, list, count, pixel, to);
        to += pixelBytes;
        j++;
      }
    }
  }
}

/**
 * Adds Σ over j < count of x(j)[c] · g(j)[c] to w[c]. The pixels of `x` are `step` bytes apart, the pixels of `g` are
 * `pixel` bytes apart. The row is summed separately before it is added to w.
 */
function addRow(x: usize, step: usize, g: usize, pixel: usize, count: i32, w: usize): void {
  let c: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; c + 64 <= pixel; c += 64) {
      let s0 = f32x4.splat(0), s1 = f32x4.splat(0), s2 = f32x4.splat(0), s3 = f32x4.splat(0);
      let from = x + c, by = g + c;
      for (let j = count; j > 0; j--) {
        s0 = madd(v128.load(from), v128.load(by), s0);
        s1 = madd(v128.load(from, 16), v128.load(by, 16), s1);
        s2 = madd(v128.load(from, 32), v128.load(by, 32), s2);
        s3 = madd(v128.load(from, 48), v128.load(by, 48), s3);
        from += step;
        by += pixel;
      }
      const to = w + c;
      v128.store(to, f32x4.add(v128.load(to), s0));
      v128.store(to, f32x4.add(v128.load(to, 16), s1), 16);
      v128.store(to, f32x4.add(v128.load(to, 32), s2), 32);
      v128.store(to, f32x4.add(v128.load(to, 48), s3), 48);
    }
    for (; c + 16 <= pixel; c += 16) {
      let sum = f32x4.splat(0);
      let from = x + c, by = g + c;
      for (let j = count; j > 0; j--) {
        sum = madd(v128.load(from), v128.load(by), sum);
        from += step;
        by += pixel;
      }
      v128.store(w + c, f32x4.add(v128.load(w + c), sum));
    }
  }
  for (; c < pixel; c += 4) {
    let sum: f32 = 0;
    let from = x + c, by = g + c;
    for (let j = count; j > 0; j--) {
      sum += load<f32>(from) * load<f32>(by);
      from += step;
      by += pixel;
    }
    store<f32>(w + c, load<f32>(w + c) + sum);
  }
}

/** Computes w[r, c, 0, q] = Σ over n, i, j of x[n, i · stride − top + r · dilation, …, q] · g[n, i, j, q]. */
export function depthwiseBackwardWeight(
  x: usize, g: usize, w: usize, batch: i32, height: i32, width: i32, channels: i32, kernelHeight: i32, kernelWidth: i32,
  outHeight: i32, outWidth: i32, strideY: i32, strideX: i32, top: i32, left: i32, dilationY: i32, dilationX: i32,
): void {
  const pixel = (<usize>channels) << 2;
  memory.fill(w, 0, <usize>(kernelHeight * kernelWidth) * pixel);
  for (let n = 0; n < batch; n++) {
    for (let i = 0; i < outHeight; i++) {
      const from = g + <usize>((n * outHeight + i) * outWidth) * pixel;
      for (let r = 0; r < kernelHeight; r++) {
        const y = i * strideY - top + r * dilationY;
        if (<u32>y >= <u32>height) continue;
        for (let c = 0; c < kernelWidth; c++) {
          // Output columns [first, end) read a pixel inside the image for this tap.
          const offset = c * dilationX - left;
          const first = offset < 0 ? (strideX - 1 - offset) / strideX : 0;
          const end = offset < width ? min(outWidth, (width - 1 - offset) / strideX + 1) : 0;
          if (first >= end) continue;
          const at = x + <usize>((n * height + y) * width + first * strideX + offset) * pixel;
          addRow(at, <usize>strideX * pixel, from + <usize>first * pixel, pixel, end - first, w + <usize>(r * kernelWidth + c) * pixel);
        }
      }
    }
  }
}
