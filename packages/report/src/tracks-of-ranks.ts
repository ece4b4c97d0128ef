import { type RankSpans, type Span, type Track, tracks } from "@skein/tensor-core";
import type { TimelineTrack, TimelineSpan } from "./charts/timeline-chart.ts";
import { kindOfPhase } from "./phases.ts";
import { bytesText } from "./quantities.ts";
import type { Kind } from "./tokens.ts";

/** Always shown, so that a rank without waiting is seen to have none. */
const shownTracks: readonly Track[] = ["compute", "collectives", "waiting"];

/** Of a kernel: by its phase. */
const kindOfSpan = ({ track, args }: Span): Kind => {
  if (track === "collectives") return "communication";
  if (track === "waiting") return "exposed";
  return track === "compute" && args?.phase !== undefined ? kindOfPhase[args.phase] : "other";
};

const labelOf = ({ name, args = {} }: Span): string =>
  [name, args.shape, args.algorithm, args.bytes === undefined ? undefined : bytesText(args.bytes)]
    .filter((part) => part !== undefined)
    .join(", ");

/**
 * A timeline's tracks: of each rank its kernels, collectives and waiting, and further tracks where they have spans,
 * with the prediction for the same rank.
 *
 * @param withSteps whether steps are a track: each holds all the rest, so that of one alone nothing is told. Default:
 *   false.
 */
export const tracksOfRanks = (
  measured: readonly RankSpans[],
  predicted: readonly RankSpans[] | undefined,
  withSteps = false,
): TimelineTrack[] => {
  const spansOf = (spans: readonly Span[], track: Track): TimelineSpan[] =>
    spans
      .filter((span) => span.track === track)
      .map((span) => ({
        label: labelOf(span),
        kind: kindOfSpan(span),
        startSeconds: span.startSeconds,
        endSeconds: span.endSeconds,
      }));
  return measured.flatMap(({ rank, process, spans }) => {
    const group = process === undefined ? `rank ${rank}` : `rank ${rank}, ${process}`;
    const foreseen = predicted?.find((one) => one.rank === rank)?.spans;
    return tracks
      .filter(
        (track) =>
          (withSteps || track !== "steps") &&
          (shownTracks.includes(track) || spans.some((span) => span.track === track)),
      )
      .map((track): TimelineTrack => {
        const isForeseen =
          foreseen !== undefined && (shownTracks.includes(track) || foreseen.some((span) => span.track === track));
        return {
          group,
          name: track,
          spans: spansOf(spans, track),
          predicted: isForeseen ? spansOf(foreseen, track) : undefined,
        };
      });
  });
};
