// Block sizes of the contractions. This file is both AssemblyScript and TypeScript: the kernels split their work into
// blocks of these sizes, and the host computes the scratch memory from them. Measured on an EPYC of the Zen 5 family
// (48 KiB L1, 1 MiB L2, 4.2 GHz, peak 67 GFLOP/s).

/**
 * Size in bytes of the buffer for one result tile of 6 rows × 8 columns. Tiles at the edges of the result are computed
 * in this buffer, then copied in part.
 */
export const TILE_BYTES = 192;
/** Number of rows of a large result tile. Small tiles have 4 rows. */
export const TILE_ROWS = 6;
export const TILE_COLUMNS = 8;

/**
 * Matrix product: number of sum indices per block. A packed panel of 8 columns (16 KiB) and six rows of the other
 * operand (12 KiB) fit in L1 together.
 */
export const INNER_BLOCK = 512;
/** Matrix product: number of columns packed at a time. The packed columns, at most 1 MiB, are streamed from L2. */
export const COLUMN_BLOCK = 512;
/**
 * Matrix product: number of rows per block. A panel is multiplied with one block of the other operand, at most 240 KiB,
 * at a time.
 */
export const ROW_BLOCK = 120;
/**
 * Matrix product: maximum number of panels for which rows are read in place instead of packed, for any row stride.
 * GFLOP/s packed / in place: 8×512×512 39 / 62, 16×512×512 50 / 64, 8×4096×1024 36 / 46. With four panels, 32×512×512
 * is faster in place (56 / 65), but rows 4 KiB apart, which share cache sets, are slower in place (32×1024×1024 55 /
 * 46).
 */
export const READ_ONCE_PANELS = 2;
/** Matrix product: bytes of scratch before the panels, for three tables of 6 addresses and a tile. */
export const PRODUCT_HEAD_BYTES = 288;

/**
 * Convolution: number of terms (taps × channels) that are summed per block of taps. A panel of 8 columns is at most 24
 * KiB, half of L1.
 */
export const TAP_BLOCK = 768;
/**
 * Convolution: number of pixels per block. The addresses (4 bytes per tap) and values of these pixels stay in L1 and L2
 * while the block is multiplied with all panels.
 */
export const PIXEL_BLOCK = 120;
/**
 * Convolution: with fewer channels than this, the column matrix (im2col) of each block is written, because loading the
 * six addresses of a tap would take longer than multiplying the tap.
 */
export const FEW_CHANNELS = 8;
/** Weight gradient: number of pixels per block. A packed panel of 8 output channels is at most 16 KiB. */
export const SUM_BLOCK = 512;
/**
 * Convolution: bytes per tap in the list of taps. An entry holds the weight address, row offset, column offset, and
 * both offsets combined in bytes.
 */
export const TAP_BYTES = 16;

/**
 * Gradients of layer norm and RMS norm: number of rows per block. The terms for gamma and beta are summed within a
 * block before the sum is added to the total.
 */
export const NORM_BLOCK_ROWS = 64;
/**
 * Winograd's F(4, 3): number of points of the transform in two dimensions, 6 × 6. Each point needs one matrix product.
 */
export const WINOGRAD_POINTS = 36;
/**
 * Winograd: bytes of padding between the values at consecutive points. Without padding, the stride between points can
 * be a power of two, so that the values at all points share cache sets.
 */
export const WINOGRAD_SPACING = 64;
/**
 * Winograd: number of terms that are summed per pass over a panel. Longer sums have larger rounding errors: for 256
 * channels, the root mean square error is 1.6e-6 of the results in one pass, 8.4e-7 in four passes.
 */
export const WINOGRAD_DEPTH = 64;
/**
 * Winograd: size in bytes of the scratch before the addresses: 36 vectors between the two passes of a transform, and
 * four kernels of four columns.
 */
export const WINOGRAD_HEAD_BYTES = 1152;
