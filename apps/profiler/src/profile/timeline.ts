import type { RankSpans } from "@skein/tensor-core";
import { secondsOf, type WorldStep } from "./steps.ts";

/** How long a step took: of the rank that took longest. */
export const worldSeconds = (step: WorldStep): number => Math.max(...step.map(({ whole }) => secondsOf(whole)));

/** The step whose time is the middle one: what it shows is neither luck nor a hiccup. */
export const medianStep = (steps: readonly WorldStep[]): WorldStep =>
  steps.toSorted((a, b) => worldSeconds(a) - worldSeconds(b))[Math.floor((steps.length - 1) / 2)]!;

/** The spans of one step, from its earliest begin on. */
export const timelineOf = (step: WorldStep): RankSpans[] => {
  const begin = Math.min(...step.map(({ whole }) => whole.startSeconds));
  return step.map(({ rank, whole, spans }) => ({
    rank,
    spans: [whole, ...spans].map((span) => ({
      ...span,
      startSeconds: span.startSeconds - begin,
      endSeconds: span.endSeconds - begin,
    })),
  }));
};
