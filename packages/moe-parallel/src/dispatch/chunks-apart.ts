// Shapes: D width of a token, R = E·C slots of all experts.
import { customGradient, stopGradient, type Tensor, vjp } from "@skein/tensor-core";
import type { DispatchSizes, ExpertRows, ExpertWork } from "./token-dispatcher.ts";

/** The ways of tokens whose chunks can be cut anew where they have arrived. */
export interface Ways {
  readonly arrive: (x_TD: Tensor, sizes: DispatchSizes) => readonly ExpertRows[];
  /** Rows that arrived in the chunks of `sizes`, in another number of chunks; nothing travels. */
  readonly cutAnew: (rows: readonly Tensor[], sizes: DispatchSizes, numChunks: number) => readonly ExpertRows[];
  /** Back to where tokens came from: f32 [R, D], in the same order whatever the chunks. */
  readonly bringHome: (done: readonly Tensor[], sizes: DispatchSizes) => Tensor;
}

/**
 * Send tokens to their experts, through them and home again, forward in `sizes.numChunks` chunks and backward in
 * `work.backwardChunks`. Backward is traced as if forward had been in its chunks, but for the rows that arrived: those
 * are forward's, cut anew.
 *
 * Cost: no byte more than in equally many chunks. What experts keep inside is of forward's chunks, so backward computes
 * it again, as a `checkpoint` around experts would, and keeps none of it until then.
 * @returns what `bringHome` does.
 */
export const throughApart = <Params>(
  x_TD: Tensor,
  sizes: DispatchSizes,
  { params, apply, backwardChunks }: ExpertWork<Params>,
  { arrive, cutAnew, bringHome }: Ways,
): Tensor => {
  const backward = { ...sizes, numChunks: backwardChunks };
  const rowsOf = (chunks: readonly ExpertRows[]): readonly Tensor[] => chunks.map(({ rows_SD }) => rows_SD);
  /** The rows that came in forward; their cotangents go back in backward's chunks. */
  const arriveAgain = (x: Tensor, rows: readonly Tensor[]): readonly ExpertRows[] => {
    const anew = cutAnew(rows.map(stopGradient), sizes, backwardChunks);
    const carried = customGradient(
      (_x: Tensor) => rowsOf(anew),
      ({ args: [own], cotangents }) => [
        vjp((tokens: Tensor) => rowsOf(arrive(tokens, backward)), own).pullback(cotangents),
      ],
    )(x);
    return anew.map(({ counts_e }, i) => ({ rows_SD: carried[i]!, counts_e }));
  };
  const { home_RD } = customGradient(
    (own: Params, x: Tensor) => {
      const chunks = arrive(x, sizes);
      const done = chunks.map((rows) => apply(own, rows));
      return { home_RD: bringHome(done, sizes), rows: rowsOf(chunks) };
    },
    ({ args, value: { rows }, cotangents }) =>
      vjp(
        ([own, x]: readonly [Params, Tensor]) => {
          const done = arriveAgain(x, rows).map((chunk) => apply(own, chunk));
          return bringHome(done, backward);
        },
        args as readonly [Params, Tensor],
      ).pullback(cotangents.home_RD) as never,
  )(params, x_TD);
  return home_RD;
};
