import { median } from "@skein/measuring";
import type { LinkSample } from "@skein/collectives";
import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, lineAt } from "./collective-model.ts";

/**
 * Fits the slowdown c of collectives of equal size that begin together. Each collective takes T = a + c · b · M
 * seconds, so c = (T − a) / (b · M). The result is the median over the sizes whose transfer time is at least the
 * start-up time. If there are no such sizes, the result is the median over the samples with the largest size.
 *
 * @param model Time model of a single collective.
 * @param together Times of several concurrent collectives of `bytes` each, from their common start to the end of the
 * last collective.
 * @returns c, 1 or more, as an entry of a `Slowdown`; 1 if transfers take no time in the model.
 * @throws ArgumentError if there are no samples, or if a time or size is invalid.
 *
 * @example
 * ```ts
 * const alone = { startupSeconds: 0, secondsPerByte: 1e-9 };
 * console.log(fitSlowdown(alone, [{ bytes: 1e6, seconds: 1.5e-3 }, { bytes: 2e6, seconds: 3e-3 }])); // 1.5
 * ```
 * Source: the model of Shi, Chu and Li, INFOCOM 2021 (ASC-WFBP), who measured 1.5 for two collectives on their network.
 */
export const fitSlowdown = (model: CollectiveModel, together: readonly LinkSample[]): number => {
  const wrong = together.find(
    ({ bytes, seconds }) => !(bytes >= 0 && seconds > 0 && Number.isFinite(bytes) && Number.isFinite(seconds)),
  );
  if (together.length === 0 || wrong !== undefined)
    throw new ArgumentError(
      wrong === undefined
        ? "fitSlowdown: got 0 samples, and a fit needs at least one; measure several collectives at once"
        : `fitSlowdown: ${wrong.bytes} bytes in ${wrong.seconds} s are not a valid sample; both must be finite, bytes 0 or more and the time above 0; measure again`,
    );
  const terms = together.map(({ bytes, seconds }) => {
    const { startupSeconds, secondsPerByte } = lineAt(model, bytes);
    return { bytes, startup: startupSeconds, transfer: secondsPerByte * bytes, seconds };
  });
  const largest = Math.max(...terms.map(({ bytes }) => bytes));
  const transferBound = terms.filter(({ startup, transfer }) => transfer > 0 && transfer >= startup);
  const used =
    transferBound.length > 0 ? transferBound : terms.filter(({ bytes, transfer }) => transfer > 0 && bytes === largest);
  return used.length === 0
    ? 1
    : Math.max(1, median(used.map(({ startup, transfer, seconds }) => (seconds - startup) / transfer)));
};
